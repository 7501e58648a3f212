// Package realnode makes a simulated cluster that one real Linux node has
// joined: a real kubelet with containerd and kube-proxy, so that containers
// really run, can be executed into, and have logs. It is part of the test bed.
//
// The node lives in a box: namespaces of its own for mounts, network and
// processes. So nothing of it is left when the box ends, and the box ends with
// the process that made it, however that ends. Outside the box there are only
//
//   - the folder [StateDir], with the cluster, images, pods and logs,
//   - the network device opr-node, which leads into the box,
//   - cgroups below /op-readiness-node.
//
// It promises:
//
//   - A node that Up could not finish, or whose context ended, leaves nothing
//     behind. [Node.Down] leaves nothing either: no process, mount, network
//     device, cgroup or file.
//   - What a killed process has left is removed by the next Up, or by [Clean].
//   - A machine has one real node at a time: a second Up waits and says so.
//   - No setting of the machine changes. Its firewall is not touched, and
//     neither are its own containerd and kubelet, if it has them.
//
// It needs Linux, root, and the programs that [Check] looks for; [Install]
// gets them on Debian, and nowhere else. Pods have no way to the internet and
// no cluster DNS.
//
// Configurations follow
// https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/,
// https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1/,
// https://github.com/containerd/containerd/blob/main/docs/cri/config.md and
// https://www.cni.dev/docs/spec/.
package realnode
