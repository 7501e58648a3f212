package realnode

import (
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
)

// StateDir is where everything of the node is while it is there.
const StateDir = "/var/lib/op-readiness-node"

// UnfitError says why no real node can run on this machine.
type UnfitError struct {
	// Missing are the parts that it lacks, each with its fix where there is
	// one.
	Missing []string
}

func (e *UnfitError) Error() string {
	return "no real node can run on this machine: " + strings.Join(e.Missing, "; ")
}

// Needs are the binaries that a cluster with a real node is made of.
func Needs() []binaries.Name {
	return append(kwok.Needs(), binaries.Kubelet, binaries.KubeProxy, binaries.Agnhost, binaries.E2ETest)
}
