// Package steer puts the pods of tests where a batch wants them, without a
// webhook server: with a MutatingAdmissionPolicy, which the API server itself
// evaluates (GA in Kubernetes 1.36, beta and off by default from 1.34).
//
// The policy holds only in namespaces that the e2e framework made (label
// e2e-run), and changes only pods that do not say where they belong. Those that
// do keep their place: with spec.os, a node name, a node selector, node
// affinity, as a HostProcess pod, or with settings that only Linux has. A pod
// that selects Windows gets the tolerations for the cluster's Windows taints,
// without which it would stay pending.
//
// A policy is there for one batch. It is found by its label, so that what a run
// left behind when it was killed is removed by the next.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/
package steer
