// Package steer puts the pods of tests where a batch wants them, without a
// webhook server. There are two ways, and one of doing without.
//
// [Policy] makes a MutatingAdmissionPolicy for each e2e.test process, which the API
// server itself evaluates (GA in Kubernetes 1.36, beta and off by default from 1.34). It
// holds only in namespaces of that process (label e2e-run), so that processes of
// different conditions work beside each other, and changes only pods that do not say
// where they belong. Those that do keep their place: with spec.os, a node name, a node
// selector, node affinity, as a HostProcess pod, or with settings that only Linux has. A
// pod that selects Windows gets the tolerations for the cluster's Windows taints,
// without which it would stay pending.
//
// A process says its id before it makes a namespace. It is held until its policy is in
// force; that it had made no namespace by then is looked up, and not taken for granted.
//
// [Cordon] makes the nodes of the other operating system unschedulable. It is for
// clusters without that API, and coarser: it holds for every pod of the cluster
// that is scheduled meanwhile, cannot tell pods of one test apart, and adds no
// tolerations.
//
// [None] steers nothing.
//
// # What stays behind
//
// All three begin by taking away what runs that were killed have left. What was
// made carries a [mark]: the run, its conditions, and the processes that need it.
// Shards of one run that cordon beside each other, under the same conditions, share
// marks on nodes, so that the first to go takes nothing from the others. Nodes that
// somebody else cordoned have no mark, and are left alone.
//
// Whoever calls Apply has the cluster lock: what is not of its run is nobody's any more.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/
package steer
