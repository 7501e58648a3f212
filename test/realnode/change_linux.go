package realnode

import (
	"context"
	"errors"
	"fmt"
)

// Stop ends a program of the node, as a service manager does: what it has made
// stays, such as containers and rules. It does nothing when the program does not
// run.
func (n *Node) Stop(ctx context.Context, program Program) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stop(ctx, program)
}

func (n *Node) stop(ctx context.Context, program Program) error {
	d := n.daemons[program]
	if d == nil {
		return nil
	}
	if err := d.stop(ctx); err != nil {
		return err
	}
	delete(n.daemons, program)
	return nil
}

// Start starts a program of the node and waits until it does its work; and until
// the node is ready, when it has all that this takes. It does nothing when the
// program runs.
func (n *Node) Start(ctx context.Context, program Program) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.restart(ctx, program)
}

// restart starts a program that does not run.
func (n *Node) restart(ctx context.Context, program Program) error {
	if n.daemons[program] != nil {
		return nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	if err := n.launch(limited, program); err != nil {
		return err
	}
	if !n.complete() {
		return nil
	}
	return n.awaitReady(limited)
}

// Configure changes the configuration of the kubelet or kube-proxy, compared to
// what the node was made with: an earlier change is gone, and nil leaves none. A
// program that runs is stopped before, and started afterwards.
func (n *Node) Configure(ctx context.Context, program Program, change Config) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	write := map[Program]func() error{Kubelet: n.writeKubelet, KubeProxy: n.writeProxy}[program]
	if write == nil {
		return fmt.Errorf("%s takes no configuration: use %s, %s", program, Kubelet, KubeProxy)
	}
	runs := n.daemons[program] != nil
	if err := n.stop(ctx, program); err != nil {
		return err
	}
	n.changes[program] = change
	if err := write(); err != nil || !runs {
		return err
	}
	return n.restart(ctx, program)
}

// Run runs a command in the box, as root of the node, and returns what it prints;
// its error has all output.
func (n *Node) Run(ctx context.Context, args ...string) (string, error) {
	n.mu.Lock()
	box := n.box
	n.mu.Unlock()
	if box == nil {
		return "", errors.New("the node is off")
	}
	return box.run(ctx, args...)
}
