package kind

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/folder"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/simulated"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/internal/whole"
)

// simulatedNetwork is where the addresses of simulated nodes lie.
const simulatedNetwork = "198.18.0.0/15"

// closedPort is where nothing listens on a control plane.
const closedPort = 1

// simulatedNodes are the Windows nodes of a plan. The API server looks for their kubelets
// on itself, by the address that it prefers ([preferredAddresses]), where it is refused
// at once.
func simulatedNodes(p *provider.Plan) []*corev1.Node {
	nodes := simulated.Nodes(0, p.Request)
	for _, node := range nodes {
		node.Status.DaemonEndpoints.KubeletEndpoint.Port = closedPort
	}
	return nodes
}

// addNodes adds the simulated nodes, and waits until all nodes are ready.
func (p *Provider) addNodes(ctx context.Context, e *engine, c *cluster, r *folder.Record) error {
	ctx, cancel := p.limit(ctx)
	defer cancel()
	client, err := c.Client(0)
	if err != nil {
		return err
	}
	if err := checkVersion(client, &r.Plan); err != nil {
		return err
	}
	nodes := simulatedNodes(&r.Plan)
	if len(nodes) > 0 {
		p.tellf("cluster %s: adding %s (%s), simulated", c.Name, text.Count(len(nodes), "Windows node"), r.Plan.WindowsVersion)
		if err := e.route(ctx, &r.Plan); err != nil {
			return err
		}
		kwok, err := p.startKwok(ctx, c, &r.Plan)
		if err != nil {
			return err
		}
		ctx, stop := whileAlive(ctx, kwok, c)
		defer stop()
		if err := simulated.Add(ctx, client, nodes); err != nil {
			return err
		}
		if err := simulated.Await(ctx, client, nodes); err != nil {
			return err
		}
	}
	if err := awaitReal(ctx, client, r); err != nil {
		return err
	}
	r.Ready = true
	return c.Write(r)
}

// checkVersion returns an error when a node image is not of the version that it was
// said to be of.
func checkVersion(client kubernetes.Interface, p *provider.Plan) error {
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the cluster's version: %w", err)
	}
	if info.GitVersion != p.KubernetesVersion {
		version := shown.Line(text.Cut(info.GitVersion, 100))
		return fmt.Errorf("image %s is of Kubernetes %s, not of %s: use --kubernetes-version %[2]s", p.Set[Image], version, p.KubernetesVersion)
	}
	return nil
}

// route makes the addresses of simulated nodes look near to the real ones. kind's
// network of pods, kindnetd, routes each node's range of pod addresses by the node's own
// address, and ends when the kernel calls that unreachable
// (https://github.com/kubernetes-sigs/kind/tree/main/images/kindnetd).
func (e *engine) route(ctx context.Context, p *provider.Plan) error {
	for _, name := range nodeNames(p) {
		if _, err := e.output(ctx, "exec", name, "ip", "route", "replace", simulatedNetwork, "dev", "eth0"); err != nil {
			return fmt.Errorf("letting node %s find simulated nodes: %w", name, err)
		}
	}
	return nil
}

// startKwok starts the process that plays the simulated nodes; it outlives this one.
func (p *Provider) startKwok(ctx context.Context, c *cluster, plan *provider.Plan) (*process.Group, error) {
	program, err := p.kwok(ctx, plan)
	if err != nil {
		return nil, err
	}
	if err := whole.WriteFile(c.stagesFile(), simulated.Stages(false), 0o600); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(c.kwokLog(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program,
		"--config="+c.stagesFile(),
		"--kubeconfig="+c.Kubeconfig(),
		"--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector="+simulated.Annotation,
		"--node-lease-duration-seconds=40")
	cmd.Dir = c.Dir
	cmd.Env = p.environ()
	cmd.Stdout, cmd.Stderr = log, log
	group, err := process.Start(cmd, 0)
	if err != nil {
		return nil, fmt.Errorf("starting kwok: %w", err)
	}
	return group, nil
}

// whileAlive returns a context that ends when kwok does. The caller calls stop when it no
// longer matters.
func whileAlive(ctx context.Context, kwok *process.Group, c *cluster) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-watched.Done():
		case <-kwok.Exited():
			cancel(fmt.Errorf("kwok ended; its log ends with\n\t%s", folder.Ending(c.kwokLog())))
		}
	}()
	return watched, func() { cancel(nil) }
}

// awaitReal waits until the cluster's real nodes are ready.
func awaitReal(ctx context.Context, client kubernetes.Interface, r *folder.Record) error {
	for problem := ""; ; {
		now := realProblem(ctx, client, r)
		if now == "" {
			return nil
		}
		if ctx.Err() == nil {
			problem = now
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for nodes: %w (%s)", context.Cause(ctx), problem)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// realProblem says which of the real nodes is missing or not ready, or "".
func realProblem(ctx context.Context, client kubernetes.Interface, r *folder.Record) string {
	if r.NoNetwork {
		return "" // none is, before somebody installs a network
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "listing nodes: " + err.Error()
	}
	is := map[string]bool{}
	for i := range list.Items {
		is[list.Items[i].Name] = simulated.Ready(&list.Items[i])
	}
	for _, name := range nodeNames(&r.Plan) {
		if !is[name] {
			return "node " + name + " is missing or not ready"
		}
	}
	return ""
}
