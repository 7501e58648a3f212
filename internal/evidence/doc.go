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
// it (STEP: Destroying namespace "x-123" for this suite.). No two of them have
// one name at the same time, so a pod belongs to the test whose output names its
// namespace; that holds also when tests run beside each other, and when a
// namespace is gone within a second, because the watch keeps what it saw of
// deleted pods. A later test may be given an earlier one's name: the pods that
// were collected for the earlier one are known by their UIDs.
//
// The end of a test is seen in its output, and its pods in the watch, and the
// watch may lag behind. So before a test's evidence is taken, a barrier goes
// through the watch: a pod for a node that does not exist, deleted when it was
// seen. Events of pods arrive in the order in which they happened; when the
// barrier has arrived, everything before it has.
//
// # When the watch breaks
//
// A connection that is cut, and an API server that answers with errors, lose
// nothing: the watch is taken up at the event where it was. Where the API server
// has not kept the events since (410 Gone, as after its restart), the pods are
// listed anew, and those that came and went in between were never seen. Every
// attempt that began before that list is marked with the time of the gap, and so
// is one whose barrier did not come through. What was not observed is never
// assumed.
//
// # Limits
//
//   - A test that was killed names no namespaces. Its pods are those in the
//     namespaces that carry its process's run id when it is killed.
//   - Pods in namespaces that a test makes by other means than the framework's
//     are not its own.
//
// Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/test/e2e/framework/framework.go
package evidence
