package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/prow/pkg/entrypoint"

	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
)

// Outcome is how a rehearsal ended.
type Outcome struct {
	// Code is what entrypoint says of the job's command: its exit code, or one of
	// [timedOut] and [aborted].
	Code int
	// Artifacts is the folder that the job had as $ARTIFACTS.
	Artifacts string
	Took      time.Duration
}

// What entrypoint says of a command that it ended.
const (
	timedOut = entrypoint.InternalErrorCode
	aborted  = entrypoint.AbortedErrorCode
)

// Run does what the plan says, and writes the job's output to log and that of
// Prow's utilities to utilities. Closing stop aborts the job as Prow does: the
// kubelet sends SIGTERM, and kills when its time is over. The end of ctx kills at
// once. Whatever the job comes to is not an error.
func (p *RehearsalPlan) Run(ctx context.Context, stop <-chan struct{}, log, utilities io.Writer) (*Outcome, error) {
	if err := p.prepare(); err != nil {
		return nil, err
	}
	began := time.Now()
	for i := range p.initial {
		c, err := p.start(&p.initial[i], utilities, utilities)
		if err != nil {
			return nil, err
		}
		select {
		case <-c.Exited():
		case <-ctx.Done():
			killAll(c)
			<-c.Exited()
			return nil, ctx.Err()
		}
		if err := c.Wait(); err != nil {
			return nil, fmt.Errorf("%s, which uploads started.json: %w: see what it says above", c.name, err)
		}
	}
	side, err := p.start(&p.sidecar, utilities, utilities)
	if err != nil {
		return nil, err
	}
	var jobs []*container
	for i := range p.jobs {
		c, err := p.start(&p.jobs[i], log, log)
		if err != nil {
			killAll(append(jobs, side)...)
			return nil, err
		}
		jobs = append(jobs, c)
	}
	if err := p.wait(ctx, stop, jobs, side); err != nil {
		return nil, err
	}
	out := &Outcome{Artifacts: p.artifacts, Took: time.Since(began)}
	for _, file := range p.markers {
		data, err := os.ReadFile(file)
		code, convErr := strconv.Atoi(strings.TrimSpace(string(data)))
		switch {
		case err != nil || convErr != nil:
			return nil, fmt.Errorf("entrypoint did not say how the job ended: %w", errors.Join(err, convErr))
		case out.Code == 0 || code == aborted:
			out.Code = code
		}
	}
	return out, nil
}

// prepare makes the volumes.
func (p *RehearsalPlan) prepare() error {
	for _, v := range p.volumes {
		dir := v.path
		if v.link != "" {
			dir = filepath.Dir(v.path)
		}
		err := os.MkdirAll(dir, 0o755)
		if err == nil && v.link != "" {
			err = os.Symlink(v.link, v.path)
		}
		if err != nil {
			return fmt.Errorf("making the volumes: %w", err)
		}
	}
	return nil
}

// wait waits for all containers, and ends them when it is to.
func (p *RehearsalPlan) wait(ctx context.Context, stop <-chan struct{}, jobs []*container, side *container) error {
	all := slices.Concat(jobs, []*container{side})
	ended := make(chan struct{})
	go func() {
		for _, c := range jobs {
			<-c.Exited()
		}
		// Without a marker sidecar would wait for ever.
		for _, file := range p.markers {
			if _, err := os.Stat(file); err != nil {
				killAll(side)
			}
		}
		<-side.Exited()
		close(ended)
	}()
	var kill <-chan time.Time
	for {
		select {
		case <-ended:
			if err := side.Wait(); err != nil && ctx.Err() == nil {
				return fmt.Errorf("sidecar, which uploads the build: %w: see what it says above", err)
			}
			return ctx.Err()
		case <-stop:
			stop = nil
			for _, c := range all {
				// As the kubelet does; an error means that it is ending already.
				_ = c.Terminate()
			}
			kill = time.After(p.Termination)
		case <-kill:
			killAll(all...)
		case <-ctx.Done():
			killAll(all...)
			<-ended
			return ctx.Err()
		}
	}
}

// container is a process that runs.
type container struct {
	*process.Group
	name string
}

func (p *RehearsalPlan) start(of *program, stdout, stderr io.Writer) (*container, error) {
	cmd := exec.Command(of.argv[0], of.argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = of.env, of.dir, stdout, stderr
	if p.held != nil {
		cmd.ExtraFiles = []*os.File{p.held}
	}
	// When this program is killed, the job is aborted, as at the end of its pod:
	// entrypoint ends it, and sidecar uploads what it wrote.
	var last syscall.Signal
	if of.job {
		last = syscall.SIGTERM
	}
	group, err := process.Start(cmd, last)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", of.name, err)
	}
	return &container{name: of.name, Group: group}, nil
}

// killAll ends containers; an error means that one has ended.
func killAll(all ...*container) {
	for _, c := range all {
		_ = c.Kill()
	}
}
