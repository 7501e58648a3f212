// Takes artifacts from where the stand-in for actions/upload-artifact keeps them.
import {cpSync, existsSync, mkdirSync, readdirSync} from 'node:fs'
import {join} from 'node:path'

const input = name => process.env[`INPUT_${name.toUpperCase()}`]?.trim() ?? ''
const run = join(process.env.STANDIN_ARTIFACTS, process.env.GITHUB_RUN_ID)
const path = input('path')

const wanted = (existsSync(run) ? readdirSync(run) : []).filter(name => input('name') ? name === input('name') : matches(name, input('pattern')))
if (input('name') && wanted.length === 0) {
  throw new Error(`Artifact '${input('name')}' not found`)
}
for (const name of wanted) {
  // As the original: one alone goes right into the folder.
  const folder = wanted.length === 1 ? path : join(path, name)
  mkdirSync(folder, {recursive: true})
  cpSync(join(run, name), folder, {recursive: true})
  console.log(`Downloaded ${name}`)
}
console.log(`Total of ${wanted.length} artifact(s) downloaded`)

function matches(name, pattern) {
  const escaped = pattern.split('*').map(part => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${escaped.join('.*')}$`).test(name)
}
