// Package result is the results folder: the one thing that passes from a run
// to everything downstream of it.
//
//	plan.json            the whole resolved plan
//	run.json             the manifest: who ran what, where, and how it ended
//	results.jsonl        events, one JSON object a line, flushed as they happen
//	junit_<cat>_<NN>.xml one JUnit file a category and part
//	metadata.json        what becomes finished.json's metadata
//	logs/                one file per batch
//
// A run appends to results.jsonl before it goes on, so what a killed run had
// finished can be read back; a last line that was cut off is dropped, and
// that is reported. Folders come from other machines: [Load] takes nothing in
// them for granted, and reads nothing but regular files.
//
// # Events
//
// Events come in an order that is part of the format, and what does not fit is a
// problem of the folder:
//
//   - run-started begins an execution: the first, and each that goes on after a
//     kill. What the one before had not brought to its end is nobody's.
//   - case-decided tells of a case that is not tested, or was decided elsewhere.
//   - batch-started, batch-suite and batch-finished are an e2e.test process, and
//     say the same of it. A batch runs in one execution. Ginkgo's own exit code
//     agrees with the tests that failed in it.
//   - test-started and test-finished are an attempt, numbered from 1 without a gap.
//     What passes has started in the same batch, and says nothing but that: no
//     message, and nothing that happened to the cluster meanwhile. Only what never
//     came to run is outside of a batch, and in error.
//   - the events of an attempt's pods stand right before its test-finished, which
//     says how many there are.
//   - test-measured has the figures of an attempt that was the test's last to end, in a
//     batch that runs; once, and not of every attempt. They decide nothing.
//   - suite-failed is a failure outside of any test, of a batch that runs.
//   - run-finished ends an execution that was not killed, after its batches.
package result
