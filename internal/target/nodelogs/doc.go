// Package nodelogs takes the logs of a cluster into a folder: those of its nodes,
// those of the pods of kube-system, and the objects there. Nothing but the API
// server is asked, so it serves clusters of any provider.
//
//	missing.txt                              what could not be had, and why
//	nodes/NODE/kubelet.log, containerd.log
//	nodes/NODE/events.log, hns.log, dumps.log          Windows only
//	pods/kube-system/POD/CONTAINER.log, CONTAINER.previous.log
//	objects/nodes.yaml, objects/kube-system/pods.yaml, …
//
// The kubelet is asked for the logs of a node first, where it answers log queries
// (https://kubernetes.io/docs/concepts/cluster-administration/system-logs/#log-query).
// What it does not have, a pod prints that is a part of the node: a HostProcess pod
// on Windows, a privileged one on Linux, which reads the node's files and changes
// nothing. Such pods live in a namespace of their own ([scratch]).
//
// A node has a time limit, and what came until then is kept. Secrets are never
// asked for, and all that is written has gone through [redact]. The names in a
// cluster may be anything: no file is written outside the folder.
//
// The HostProcess pods and their scripts have not been run on Windows yet; the
// scripts are known to be PowerShell, no more.
package nodelogs
