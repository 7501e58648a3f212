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
// An output says what a test likes it to say. So a namespace is taken only if it
// carries the run id of the test's own process, in the label that the framework
// gives it when it makes it. Namespaces are watched as pods are, because they are
// gone when one asks later.
//
// The end of a test is seen in its output, and its pods in the watch, and the
// watch may lag behind. So before a test's evidence is taken, a barrier goes
// through the watch: a pod for a node that does not exist, deleted when it was
// seen. Events of pods arrive in the order in which they happened; when the
// barrier has arrived, everything before it has. Namespaces are another watch, so
// those that the output names, and those of pods that were seen, are waited for.
//
// # When the watch breaks
//
// A connection that is cut, and an API server that answers with errors, lose
// nothing: the watch is taken up at the event where it was. Where the API server
// has not kept the events since (410 Gone, as after its restart), the pods are
// listed again, and those that came and went in between were never seen. Every
// attempt that began before that list is marked with the time of the gap, and so
// is one whose barrier did not come through. What was not observed is never
// assumed.
//
// What is not known to be of one of this run's processes ([Watch.Own]) is let go a
// minute after it was seen, so that others on the cluster cost no memory.
//
// # What happened meanwhile
//
// Why a test failed may not be its own doing. So nodes are watched, too: a watch
// misses no change that was taken back, which a look before and one after would. Who
// changed a node stands in its managedFields, as far as anybody is known. That a
// namespace was deleted is a change where the output says of it later that the
// framework destroys it: both times are of this machine. What is told
// ([Watch.Changes]) explains a failure, and decides nothing.
//
// # Limits
//
//   - A test that was killed names no namespaces. Its pods are those in all
//     namespaces of its process that were not collected for an earlier test.
//   - Pods in namespaces that a test makes by other means than the framework's
//     are not its own.
//
// Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/test/e2e/framework/framework.go
package evidence
