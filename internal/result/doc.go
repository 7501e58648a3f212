// Package result is the results folder: the one thing that passes from a run
// to everything downstream of it.
//
//	plan.json            the whole resolved plan
//	run.json             the manifest: who ran what, where, and how it ended
//	results.jsonl        events, one JSON object a line, flushed as they happen
//	junit_<cat>_<NN>.xml one JUnit file a category and part
//	metadata.json        what becomes finished.json's metadata
//	logs/                one file a batch
//
// A run appends to results.jsonl before it goes on, so what a killed run had
// finished can be read back; a last line that was cut off is dropped, and
// that is reported. Folders come from other machines: [Read] takes nothing in
// them for granted.
package result
