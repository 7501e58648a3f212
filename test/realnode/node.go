package realnode

import (
	"fmt"
	"io"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/test/images"
)

// Options is the shape of a cluster with real nodes.
type Options struct {
	// Cluster is the simulated part. Its BindAddress and JoinAddress are set
	// by Up, and its Kubeconfig, too, is Up's own.
	Cluster provider.Request
	// Nodes is how many nodes are real: 1 or 2.
	Nodes int
	// Config changes the configurations of all nodes' programs.
	Config map[Program]Config
	// CoreDNS is the program of the cluster's DNS, from [BuildCoreDNS]. When it
	// is empty, the cluster has none.
	CoreDNS string
	// Binaries has those of [Needs].
	Binaries kwok.Binaries
	// Progress is told what takes time; nothing is told when it is nil.
	Progress io.Writer
}

// DefaultOptions returns a cluster whose only Linux node is the real one, so
// that whatever goes to Linux runs, beside two simulated Windows nodes.
func DefaultOptions() Options {
	cluster := provider.DefaultRequest()
	cluster.Name = "real-node"
	cluster.LinuxNodes = 0
	return Options{Cluster: cluster, Nodes: 1}
}

func (o *Options) validate() error {
	if o.Nodes < 1 || o.Nodes > maxNodes {
		return fmt.Errorf("%d real nodes: use 1 to %d", o.Nodes, maxNodes)
	}
	for program := range o.Config {
		if program != Kubelet && program != KubeProxy {
			return fmt.Errorf("%s takes no configuration: use %s, %s", program, Kubelet, KubeProxy)
		}
	}
	return nil
}

// maxNodes is how many real nodes a cluster may have.
const maxNodes = 2

// NodeName is the name of the first real node, and SecondNodeName that of the
// second.
const (
	NodeName       = "real-linux"
	SecondNodeName = "real-linux-2"
)

// Program is one of which a node consists.
type Program string

// The programs of each node; CoreDNS runs on the first one, when the cluster has
// a DNS.
const (
	Containerd Program = "containerd"
	Kubelet    Program = "kubelet"
	KubeProxy  Program = "kube-proxy"
	CoreDNS    Program = "coredns"
)

// Config is fields of a KubeletConfiguration or KubeProxyConfiguration. Each
// replaces the whole field of that name.
type Config map[string]any

// Bed is a cluster with real nodes.
type Bed struct {
	Cluster *provider.Cluster
	// Images are those that the nodes have.
	Images images.Names
	// Nodes are the real ones, in the order of their names.
	Nodes []*Node

	running
}

// Node is a real node. Its methods may be called at the same time; each waits
// for the one before.
type Node struct {
	// Name is that of the Node object.
	Name string
	// Address is the node's own, an IPv4 address.
	Address string

	boxed
}

// Boot is how a node starts when it is rebooted. The zero value starts it as it
// was.
type Boot struct {
	// SameID keeps the boot id, as if there had been no reboot.
	SameID bool
	// Without are programs that do not start.
	Without []Program
	// Network is the configuration of the pods' network.
	Network Network
}

// Network is the configuration of a node's network for pods.
type Network int

// The pods' network works; it has no configuration, so that the node is not
// ready; or it has a wrong one, so that the node is ready, and no pod starts.
const (
	NetworkWorks Network = iota
	NetworkMissing
	NetworkBroken
)
