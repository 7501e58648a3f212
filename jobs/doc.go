// Package jobs makes Prow's jobs from op-readiness.yaml: presubmits, periodics
// and the postsubmit, as Prow's own types.
//
// What it promises, and holds against Prow's and kubernetes/test-infra's own
// code in its tests: Prow's strict loader takes every file; the names, the
// folders in the bucket and the tabs are those that package testgrid shows; and
// what a job runs is a command line that this program accepts. The same
// configuration always makes the same bytes.
//
// Formats: https://docs.prow.k8s.io/docs/jobs/, and the annotations of
// https://github.com/kubernetes/test-infra/blob/master/testgrid/config.md and
// https://github.com/kubernetes/test-infra/tree/master/releng/config-forker.
package jobs
