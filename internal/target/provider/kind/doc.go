// Package kind makes hybrid clusters with kind (https://kind.sigs.k8s.io): a control
// plane and Linux workers that are containers of Docker, podman or nerdctl, in which
// containers run, and beside them Windows nodes that kwok (https://kwok.sigs.k8s.io)
// plays, on which none does: their logs and exec are refused at once.
//
// It promises:
//
//   - A cluster's tags are the labels of a volume, op-readiness-<name>, which is there
//     before all else and goes last: kind passes no labels to its containers.
//   - Down finds containers and volumes by what kind calls them, processes by their
//     command lines, and files by their path; it needs no ledger. That there is nothing
//     is no error.
//   - What makes a cluster ends with whoever asked for it, also when that is killed.
//   - The user's kubeconfig is left alone. What stays is what kind itself leaves: the
//     network "kind", and node images.
//
// kind's calls cannot be interrupted, so each of them runs in a process of its own: this
// program, called with [Command], which calls [Child].
//
// A cluster's folder, <Dir>/<name>, holds cluster.json (the plan), kubeconfig, the logs of
// kind's calls and of kwok, and kwok's stages.
package kind
