// Package prow knows what a process finds around it in a Prow job:
// https://docs.prow.k8s.io/docs/jobs/#job-environment-variables
package prow
