// Keeps the folder, once. Jobs beside each other may both come to it.
import {cpSync, existsSync, mkdtempSync, renameSync} from 'node:fs'
import {join} from 'node:path'

const {INPUT_KEY: key, INPUT_PATH: path, STANDIN_CACHE: store, STATE_missed: missed} = process.env
if (missed && existsSync(path) && !existsSync(join(store, key))) {
  const copy = join(mkdtempSync(join(store, 'new-')), 'copy')
  cpSync(path, copy, {recursive: true})
  try {
    renameSync(copy, join(store, key))
    console.log(`Cache saved with key: ${key}`)
  } catch {
    console.log(`Unable to reserve cache with key ${key}, another job may be creating this cache.`)
  }
}
