// Package junit reads, writes and prunes JUnit XML as TestGrid understands it.
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
// is not well-formed, not UTF-8, has a document type declaration, another root
// element or exceeds one of the Limits is refused with an *Error that names the
// input, the line and the offset. Of what it keeps, reading loses nothing that
// JUnit defines: names, attributes, properties, messages, types, bodies and
// output. Elements that JUnit does not define are checked and left out.
//
// Memory is bounded by the Limits, not by the size of the input.
package junit
