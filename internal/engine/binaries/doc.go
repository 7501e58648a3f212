// Package binaries obtains the real Kubernetes binaries, for any released
// version, and keeps them in a cache that several processes may share.
//
// It promises:
//
//   - A path that [Store.Get] returns is an absolute path of a file whose
//     SHA-256 was recorded when it was obtained and whose own version output
//     named the version that was asked for. A file that has changed since is
//     refused, never quietly replaced.
//   - Nothing is visible in the cache before it is complete: files are written
//     beside their place, synced, proven and renamed.
//   - Two processes that ask for the same component do the work once; the
//     second waits and says so.
//   - A checksum that does not match is an error. Only an unreachable or
//     incomplete release leads to building from source, and it is said.
//
// Released files and their checksums come from https://dl.k8s.io (see
// https://kubernetes.io/releases/download/) and from etcd's GitHub releases.
// kwok publishes its binaries without checksums, so kwok is always built.
// Builds take k8s.io/kubernetes from the Go module proxy
// (https://go.dev/ref/mod#goproxy-protocol); for the pinned versions
// package pins fixes the checksum of every module, for all others Go's
// checksum database vouches.
//
// The cache:
//
//	<dir>/kubernetes/v1.36.3/linux-amd64/kube-apiserver
//	<dir>/kubernetes/v1.36.3/linux-amd64/kube-apiserver.manifest.json
//	<dir>/etcd/v3.6.8/linux-amd64/…
//	<dir>/kwok/v0.8.0/linux-amd64/…
//	<dir>/locks/…
package binaries
