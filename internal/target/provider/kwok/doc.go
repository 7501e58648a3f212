// Package kwok makes simulated hybrid clusters: a real etcd, API server,
// controller manager and scheduler, and nodes that kwok (https://kwok.sigs.k8s.io)
// plays. Pods on them become Running and Ready and get addresses, but no
// container runs: logs and exec are refused at once.
//
// It promises:
//
//   - Down leaves no process and no file of the cluster, and is not an error when
//     there is none.
//   - Only nodes annotated kwok.x-k8s.io/node=fake are simulated, so that a
//     real node can join.
//   - Nothing but the cluster's own folder is written. Servers listen on the loopback
//     address; the API server alone can be told otherwise.
//
// A cluster's folder, <Dir>/<name>, holds cluster.json (the plan, with the tags), which
// is there before all else and goes last, kubeconfig, and the working folder of kwokctl
// with its logs, whose configuration is
// https://kwok.sigs.k8s.io/docs/user/configuration/.
package kwok
