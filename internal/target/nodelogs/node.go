package nodelogs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// source is a log of a node.
type source struct {
	// name is the file's, without .log, and also that of the service, for those
	// that a kubelet can be asked for.
	name    string
	service bool
	script  string
}

// sources are the logs of nodes of a system.
func sources(of specs.OS) []source {
	if of == specs.Windows {
		return []source{
			{"kubelet", true, "log.ps1"}, {"containerd", true, "log.ps1"},
			{"events", false, "events.ps1"}, {"hns", false, "hns.ps1"}, {"dumps", false, "dumps.ps1"},
		}
	}
	return []source{{"kubelet", true, "log.sh"}, {"containerd", true, "log.sh"}}
}

func (s source) path(node string) string { return file("nodes", node, s.name) + ".log" }

// node collects the logs of a node.
func (c *collector) node(ctx context.Context, n *corev1.Node) {
	facts := cluster.NodeFacts(n)
	switch {
	case facts.Simulated:
		c.miss(file("nodes", n.Name), "simulated: nothing runs there")
		return
	case facts.OS != specs.Windows && facts.OS != specs.Linux:
		c.miss(file("nodes", n.Name), "it is not known whether the node is Linux or Windows")
		return
	}
	_ = c.within(ctx, func(ctx context.Context) error {
		if lacking := c.queried(ctx, n.Name, sources(facts.OS)); len(lacking) > 0 {
			c.printed(ctx, n, facts.OS, lacking)
		}
		return nil
	})
}

// lack is a log that the kubelet does not have.
type lack struct {
	source
	why string
}

// queried asks the kubelet, and returns what a pod is to be asked for. What cannot
// be had at all is said to be missing.
func (c *collector) queried(ctx context.Context, node string, all []source) (lacking []lack) {
	off := error(nil)
	for i, s := range all {
		if !s.service {
			lacking = append(lacking, lack{s, ""})
			continue
		}
		err := off
		if err == nil {
			err = c.keep(ctx, s.path(node), c.query(node, s.name))
		}
		switch {
		case err == nil:
			c.note(fmt.Sprintf("logs: the kubelet of %s gave the log of %s", node, s.name))
			continue
		case unreachable(ctx, err):
			for _, rest := range slices.Concat(all[i:], sourcesOf(lacking)) {
				c.miss(rest.path(node), "asking the kubelet: "+reason(ctx, err))
			}
			return nil
		case errors.Is(err, errOff):
			off = err
		}
		lacking = append(lacking, lack{s, reason(ctx, err)})
	}
	return lacking
}

func sourcesOf(lacking []lack) (all []source) {
	for _, l := range lacking {
		all = append(all, l.source)
	}
	return all
}

// missAll says that a node's logs are missing, for one reason.
func (c *collector) missAll(node string, lacking []lack, why string) {
	for _, l := range lacking {
		c.miss(l.path(node), strings.TrimPrefix(l.why+"; "+why, "; "))
	}
}
