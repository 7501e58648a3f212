// Package plan decides what a run will do: it selects cases of the standard,
// resolves them to the exact tests of one e2e.test binary, orders the tests,
// and cuts them into shards. A plan is a value ([result.Plan]); making one
// touches neither the cluster nor the disk.
package plan
