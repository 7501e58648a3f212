// Package evidence observes where the pods of each test ran.
//
// A pass means nothing if the pods ran on Linux, so a run watches all pods of
// the cluster with one informer, and ties each pod to the attempt of the test
// that made it.
//
// # How a pod is tied to its test
//
// The e2e framework makes a namespace for every test, and several where a test
// asks for more, and names each of them in the test's output when it destroys
// it (STEP: Destroying namespace "x-123" for this suite.). Those names are
// unique, so a pod belongs to the test whose output names its namespace; that
// holds also when tests run beside each other, and when a namespace is gone
// within a second, because the watch keeps what it saw of deleted pods.
//
// The end of a test is seen in its output, and its pods in the watch, and the
// watch may lag behind. So before a test's evidence is taken, a barrier goes
// through the watch: a pod for a node that does not exist, made and deleted at
// once. Events of pods arrive in the order in which they happened; when the
// barrier has arrived, everything before it has.
//
// # Limits
//
//   - A test that was killed, or whose namespaces are kept
//     (--delete-namespace=false), names none: its pods stay unobserved.
//   - Pods in namespaces that a test makes by other means are not its own.
//   - When the watch breaks in a way that can lose events, attempts that ran
//     at that time are marked as not fully observed, and so are those whose
//     barrier did not come through. What was not observed is never assumed.
//
// Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/test/e2e/framework/framework.go
package evidence
