// Package intake takes in results folders that somebody else made and packed:
// the zip archives in which GitHub keeps artifacts
// (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT), and builds in a
// bucket, laid out as Prow does.
//
// Both are hostile input. Nothing is taken but the files that a results folder
// consists of, by their names; a name that means harm, an entry that is not a plain
// file, and anything above the [Limits] refuses the whole. What was refused
// leaves nothing behind. What the files say is judged later, by package result.
package intake
