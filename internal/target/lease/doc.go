// Package lease is the cluster lock: two runs on one cluster spoil each other's
// proof, and so do two groups of tests of one run that may not run beside each
// other.
//
// # The Lease
//
// The lock is one Lease, "op-readiness" in namespace "default". That namespace
// is in every cluster and cannot be deleted, managed clusters let people write
// to it, which some do not allow for kube-system, and who may write Leases
// there has no power over the leader election of the control plane. See [Rule]
// for the permission that is needed.
//
// spec.holderIdentity is the run's id. The annotation op-readiness/lock names
// the members: the shards of the run that are at work, each with its phase, its
// conditions, and its own renewals. All is in one object, so every change is one
// conditional write (by resourceVersion), and of two that contend one sees what
// the other wrote. A Lease for each member would need a second look after the
// write, and a way to back off. The other fields of spec are for people, and for
// versions of this package that cannot read the annotation.
//
// # Who gets in
//
// A run has the cluster from its first member's coming to its last one's going;
// other runs are refused or wait. Within the run, members work beside each other
// only when both are in the parallel phase, under the same conditions; a serial
// or disruptive group is alone. A member that must wait for the shards of its
// own run stays a member, so that no other run slips in between two groups.
//
// # Who is dead
//
// A member that was not renewed for its duration is dead, and is replaced by who
// comes next. As in client-go's leader election, the observer judges by its own
// clock, from the moment when it saw the member change; the clocks of machines
// are never compared. A member itself counts from before its last successful
// renewal began, so it knows that it is lost ([Lock.Lost]) no later than others
// do. A process that stood still, or a machine that was suspended, finds out
// whenever it asks ([Lock.Err]), and before what it did counts, it asks the Lease
// ([Lock.Confirm]). Durations above an hour are not believed.
//
// Source: https://kubernetes.io/docs/concepts/architecture/leases/
package lease
