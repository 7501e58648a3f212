// Package specs is the Windows Operational Readiness standard as data: every
// requirement of KEP-2578, the upstream end-to-end tests that verify it, the
// conditions under which they must run, and how much they prove.
//
// The standard lives in one YAML file a category beside this file, and is
// embedded in the binary ([Embedded]). The package loads such files, also those
// of the reference implementation and of the KEP ([LoadDir]), gives the cases
// that hold for a Kubernetes version ([Set.For]), and checks them against the
// list of tests that an e2e.test binary has ([Lint]). Lists of some versions
// come with it ([Catalogue]).
//
// It promises that what it loads is consistent: every file is read strictly,
// and everything that is wrong is reported at once, with file and line. README.md
// describes the format of the files, labels and capabilities.
//
// Source: https://github.com/kubernetes/enhancements/tree/master/keps/sig-windows/2578-windows-conformance
package specs
