// Package run executes a plan: it starts e2e.test as few times as correctness
// allows, records every finished test before anything else happens, and stops
// what hangs.
//
// A batch is one e2e.test process that runs tests of one phase and one set of
// conditions, one after the other. Where tests may run beside each other,
// several batches do: at any moment each process runs one test, so that the
// time limit, the log and the namespaces of a test are its own.
package run
