package kind

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
)

// processes returns the ids of the cluster's processes on this machine, told by their
// command lines. A recorded process id would not do: after a reboot it may be somebody
// else's. Calls are those of kind, which lead their group; others are kwok, and what kind
// has started to make containers and may outlive it.
func (c *cluster) processes() (calls, others []int, err error) {
	all, err := process.List()
	if err != nil {
		return nil, nil, err
	}
	making := c.making()
	for _, p := range all {
		switch {
		case strings.HasSuffix(p.Command, " "+Command+" "+c.Dir):
			calls = append(calls, p.PID)
		case making.MatchString(p.Command) || c.isKwok(p.Command):
			others = append(others, p.PID)
		}
	}
	return calls, others, nil
}

// making matches the commands by which kind makes containers and volumes.
func (c *cluster) making() *regexp.Regexp {
	node := regexp.QuoteMeta(c.Name) + `-(control-plane|worker)\d*`
	label := regexp.QuoteMeta(clusterLabel + "=" + c.Name)
	return regexp.MustCompile(`^\S*(docker|podman|nerdctl) (run --name ` + node + ` .*--label ` + label + ` |volume create --label ` + node + `=true$)`)
}

// isKwok tells whether a command line is that of the kwok that plays the cluster's
// simulated nodes.
func (c *cluster) isKwok(command string) bool {
	return strings.Contains(command+" ", " --config="+c.stagesFile()+" ")
}

// played tells whether somebody plays the cluster's simulated nodes.
func (c *cluster) played() (bool, error) {
	all, err := process.List()
	return slices.ContainsFunc(all, func(p process.Info) bool { return c.isKwok(p.Command) }), err
}

// endProcesses ends the cluster's processes, and returns when they have ended. What they
// work on is thrown away, so nothing is asked to stop in order.
func (c *cluster) endProcesses(ctx context.Context) error {
	for {
		calls, others, err := c.processes()
		if err != nil || len(calls)+len(others) == 0 {
			return err
		}
		for _, id := range calls {
			if err := process.End(ctx, id, 0); err != nil {
				return err
			}
		}
		for _, id := range others {
			if err := process.Kill(id); err != nil {
				return fmt.Errorf("ending process %d: %w", id, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for processes %v to end: %w", others, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}
