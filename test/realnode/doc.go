// Package realnode makes a simulated cluster that one or two real Linux nodes have
// joined: real kubelets with containerd and kube-proxy, so that containers really
// run, can be executed into, and have logs. It is part of the test bed.
//
// Each node lives in a box: namespaces of its own for mounts, network and
// processes. So nothing of it is left when the box ends, and the box ends with
// the process that made it, however that ends. Outside the boxes there are only
//
//   - the folder [StateDir], with the cluster, images, pods and logs,
//   - the network devices opr-node and opr-node-2, which lead into the boxes,
//   - cgroups whose names begin with op-readiness-node.
//
// It promises:
//
//   - A node that Up could not finish, or whose context ended, leaves nothing
//     behind. [Bed.Down] leaves nothing either: no process, mount, network
//     device, cgroup or file.
//   - What a killed process has left is removed by the next Up, or by [Clean].
//   - A machine has the nodes of one cluster at a time: a second Up waits and says
//     so.
//   - No setting of the machine changes. Its firewall is not touched, and
//     neither are its own containerd and kubelet, if it has them. Packets from one
//     node to the other do not pass the machine, which need not forward any.
//
// # What can be done to a node
//
// [Node.Stop] and [Node.Start] are for one program, [Node.Configure] changes the
// kubelet's or kube-proxy's configuration, and [Node.Run] runs a command in the
// box: nft, for one, drops packets there.
//
// A box is rebooted by [Node.Reboot], or by what reboots any Linux node. A
// privileged pod with hostPID runs
//
//	nsenter -t 1 -m shutdown -r +1    # in a minute; "now" and +MINUTES are known
//	reboot -f                         # at once, by reboot(2)
//
// The first is a program of the box, /usr/local/sbin/shutdown; there is a reboot
// beside it, but busybox's nsenter runs its own. The machine does not notice:
// reboot(2) ends the namespace that it is called in. Everything in
// the box ends, and the box is made again with another boot id; or as
// [Node.NextBoot] says, for a node that does not come back as it was.
//
// It needs Linux, root, and the programs that [Check] looks for; [Install]
// gets them on Debian, and nowhere else. Pods have no way to the internet.
//
// The cluster's DNS is CoreDNS, built of the module test/coredns, with a few
// plugins: a program of the first node, behind the Service kube-system/kube-dns.
// Names outside of the cluster do not exist for it.
//
// Configurations follow
// https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/,
// https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1/,
// https://github.com/containerd/containerd/blob/main/docs/cri/config.md and
// https://www.cni.dev/docs/spec/.
package realnode
