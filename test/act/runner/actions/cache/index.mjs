// Restores a folder from $STANDIN_CACHE/<key>, and notes for post.mjs where it was
// not there.
import {appendFileSync, cpSync, existsSync} from 'node:fs'
import {join} from 'node:path'

const {INPUT_KEY: key, INPUT_PATH: path, STANDIN_CACHE: store} = process.env
const kept = join(store, key)
const hit = existsSync(kept)
if (hit) {
  cpSync(kept, path, {recursive: true})
  console.log(`Cache restored from key: ${key}`)
} else {
  console.log(`Cache not found for input keys: ${key}`)
  appendFileSync(process.env.GITHUB_STATE, 'missed=true\n')
}
appendFileSync(process.env.GITHUB_OUTPUT, `cache-hit=${hit}\n`)
