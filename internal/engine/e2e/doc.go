// Package e2e drives the e2e.test binary of Kubernetes: it checks that a file
// is one, lists its tests, composes its command line, starts it so that it
// dies with this process, and reads what it says.
//
// What a test did is read twice: from the verbose output while the process
// runs, so that a finished test is known at once, and from ginkgo's JSON
// report when it has ended. The formats are those of ginkgo v2's default
// reporter and of its types.Report:
// https://github.com/onsi/ginkgo/blob/v2.28.1/reporters/default_reporter.go
package e2e
