// Package faults holds runs of op-readiness against what goes wrong around them:
// between them and a real kube-apiserver is a proxy that refuses, cuts, loses
// answers, delays and stands still, and the runner itself is stopped and goes on.
// Each test says what the run must come to, and what may be left of it in the
// cluster and on disk.
package faults
