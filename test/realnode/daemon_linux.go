package realnode

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// daemon is a program that runs in a box until it is stopped or the box ends.
type daemon struct {
	name  Program
	node  *Node
	box   *box
	ended chan struct{}
}

// stopTimeout is how long a program may take to end when it is asked to; then
// it is killed.
const stopTimeout = 10 * time.Second

// daemon starts a program in the box. What it says is added to its log.
func (n *Node) daemon(name Program, args ...string) (*daemon, error) {
	log, err := os.OpenFile(n.log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// The program has its number by another name: that in the box.
	script := []string{"sh", "-c", `echo $$ >"$0" && exec "$@"`, pidFile(name)}
	cmd := n.box.command(context.Background(), append(script, args...)...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + n.dir, "TMPDIR=" + n.dir}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	d := &daemon{name: name, node: n, box: n.box, ended: make(chan struct{})}
	n.daemons[name] = d
	go func() {
		defer close(d.ended)
		_ = cmd.Wait()
	}()
	return d, nil
}

// pidFile is where a program's number is, in the box.
func pidFile(name Program) string { return "/run/bed-" + string(name) + ".pid" }

// stop ends the program. It does nothing when that has ended.
func (d *daemon) stop(ctx context.Context) error {
	for _, signal := range []string{"TERM", "KILL"} {
		select {
		case <-d.ended:
			return nil
		default:
		}
		_, err := d.box.run(ctx, "sh", "-c", fmt.Sprintf("kill -%s $(cat %s)", signal, pidFile(d.name)))
		select {
		case <-d.ended:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to end: %w", d.name, context.Cause(ctx))
		case <-time.After(stopTimeout):
			if err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%s was killed, and has not ended within %s", d.name, stopTimeout)
}

// await waits until probe succeeds, and fails at once when the program ends.
func (d *daemon) await(ctx context.Context, probe func(context.Context) error) error {
	for {
		last := probe(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-d.ended:
			return fmt.Errorf("%s of %s ended; its log ends with\n\t%s", d.name, d.node.Name, d.said())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s of %s: %w (%w); its log ends with\n\t%s", d.name, d.node.Name, context.Cause(ctx), last, d.said())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (d *daemon) said() string {
	return strings.ReplaceAll(d.node.Log(d.name), "\n", "\n\t")
}
