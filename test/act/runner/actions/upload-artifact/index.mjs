// Keeps artifacts in a folder: $STANDIN_ARTIFACTS/<run id>/<name>. The rules are
// GitHub's: a name is there once in a run, holds no character that files must not
// have, and hidden files stay behind.
import {appendFileSync, cpSync, existsSync, mkdirSync, readdirSync, rmSync} from 'node:fs'
import {basename, join} from 'node:path'

const input = name => process.env[`INPUT_${name.toUpperCase()}`]?.trim() ?? ''
const {STANDIN_ARTIFACTS: store, GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository, GITHUB_RUN_ID: run} = process.env
const name = input('name')
const folder = input('path')

if (name === '' || /["<>|*?:\r\n\\/]/.test(name)) {
  throw new Error(`The artifact name is not valid: ${name}`)
}
const hidden = path => basename(path).startsWith('.')
if (!existsSync(folder) || !readdirSync(folder, {recursive: true, withFileTypes: true}).some(f => f.isFile() && !hidden(f.name))) {
  console.log(`No files were found with the provided path: ${folder}. No artifacts will be uploaded.`)
  process.exit(input('if-no-files-found') === 'error' ? 1 : 0)
}
const artifact = join(store, run, name)
if (input('overwrite') === 'true') {
  rmSync(artifact, {recursive: true, force: true})
}
if (existsSync(artifact)) {
  throw new Error(`Failed to CreateArtifact: an artifact with this name already exists on the workflow run: ${name}`)
}
mkdirSync(artifact, {recursive: true})
cpSync(folder, artifact, {recursive: true, filter: path => path === folder || !hidden(path)})
console.log(`Artifact ${name} has been successfully uploaded`)
appendFileSync(process.env.GITHUB_OUTPUT, `artifact-id=1\nartifact-url=${server}/${repository}/actions/runs/${run}/artifacts/1\n`)
