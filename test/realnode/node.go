package realnode

import (
	"io"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
)

// Options is the shape of a cluster with a real node.
type Options struct {
	// Cluster is the simulated part. Its BindAddress and JoinAddress are set
	// by Up, and its Kubeconfig, too, is Up's own.
	Cluster kwok.Options
	// Binaries has those of [Needs].
	Binaries kwok.Binaries
	// Progress is told what takes time; nothing is told when it is nil.
	Progress io.Writer
}

// DefaultOptions returns a cluster whose only Linux node is the real one, so
// that whatever goes to Linux runs, beside two simulated Windows nodes.
func DefaultOptions() Options {
	cluster := kwok.DefaultOptions()
	cluster.Name = "real-node"
	cluster.LinuxNodes = 0
	return Options{Cluster: cluster}
}

// NodeName is the name of the real node.
const NodeName = "real-linux"

// Images are the names of the images that the real node has, by what is in
// them.
type Images struct {
	// Agnhost is Kubernetes' own test program, beside busybox.
	Agnhost string
	// Busybox is the machine's own, whatever version the name says.
	Busybox string
	// Pause is agnhost, too.
	Pause string
}

// Node is a cluster with a real node.
type Node struct {
	Cluster *provider.Cluster
	Images  Images

	running
}
