// Package junit writes JUnit XML as TestGrid understands it, and reads of others'
// how each test case ended.
//
// There is no standard for JUnit XML. What this package obeys is what
// TestGrid's updater accepts and what Kubernetes' e2e.test writes:
//
//   - https://github.com/GoogleCloudPlatform/testgrid/blob/main/metadata/junit/junit.go
//   - https://github.com/onsi/ginkgo/blob/master/reporters/junit_report.go
//
// What is written is always well-formed XML 1.0 in UTF-8, whatever the strings
// hold: characters that XML does not allow are removed, terminal escape
// sequences with them. Times are plain decimal numbers of seconds, counts are
// computed and never copied, the reason of a skipped case stands in the body of
// its element (TestGrid drops a skipped case with an empty body), and the same
// input gives the same bytes.
//
// What is read may be hostile. Reading is strict and streaming: a document that
// is not well-formed, not UTF-8, has a document type declaration or another root
// element, or exceeds a limit, is refused with an error that names the input and
// the line. Memory is bounded by these limits, not by the size of the input.
package junit
