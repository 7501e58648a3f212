package kind

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	kindcluster "sigs.k8s.io/kind/pkg/cluster"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// engineVariable is kind's own: it names the engine to use.
const engineVariable = "KIND_EXPERIMENTAL_PROVIDER"

// The engines, in the order in which they are taken, and what each is asked: which daemon
// or store it has. A client alone answers with nothing, or fails.
var engines = []struct{ name, ask string }{
	{"docker", "{{.ID}}"},
	{"podman", "{{.Store.GraphRoot}}"},
	{"nerdctl", "{{.ID}}"},
}

func engineNames() []string {
	var names []string
	for _, e := range engines {
		names = append(names, e.name)
	}
	return names
}

// kindOption is how kind is told of an engine.
func kindOption(name string) (kindcluster.ProviderOption, error) {
	switch name {
	case "docker":
		return kindcluster.ProviderWithDocker(), nil
	case "podman":
		return kindcluster.ProviderWithPodman(), nil
	case "nerdctl":
		return kindcluster.ProviderWithNerdctl(name), nil
	}
	return nil, fmt.Errorf("unknown container engine %q: use %s", name, text.Or(engineNames()))
}

// engine is a container engine.
type engine struct {
	name    string
	program string
	environ []string
	// store tells its daemon, or its store, from others.
	store string
}

// output runs a command of the engine, and returns what it prints.
func (e *engine) output(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, e.program, args...)
	cmd.Env = e.environ
	cmd.WaitDelay = time.Second // it may leave a child that holds its output open
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if said := shown.Line(text.CutFront(strings.TrimSpace(stderr.String()), 2000)); said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return "", fmt.Errorf("%s %s: %w", e.name, strings.Join(args, " "), err)
	}
	return stdout.String(), nil
}

// lines is output, line by line, without empty ones.
func (e *engine) lines(ctx context.Context, args ...string) ([]string, error) {
	out, err := e.output(ctx, args...)
	return strings.Fields(out), err
}

// answer is what came of asking an engine.
type answer struct {
	engine *engine
	err    error
}

// ask asks all engines at once whether they work. Once one does, they are not asked
// again: asking takes as long as much of what is then done.
func (p *Provider) ask(ctx context.Context) []answer {
	p.asking.Lock()
	defer p.asking.Unlock()
	if p.answers != nil {
		return p.answers
	}
	answers := p.askAll(ctx)
	if slices.ContainsFunc(answers, func(a answer) bool { return a.err == nil }) {
		p.answers = answers
	}
	return answers
}

func (p *Provider) askAll(ctx context.Context) []answer {
	limit := cmp.Or(p.askWithin, 10*time.Second)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	answers := make([]answer, len(engines))
	var group sync.WaitGroup
	for i, e := range engines {
		group.Go(func() { answers[i] = p.askOne(ctx, e.name, e.ask) })
	}
	group.Wait()
	return answers
}

func (p *Provider) askOne(ctx context.Context, name, format string) answer {
	e := &engine{name: name, environ: p.environ()}
	var err error
	if e.program, err = lookPath(e.environ, name); err != nil {
		return answer{e, err}
	}
	store, err := e.output(ctx, "info", "--format", format)
	if e.store = shown.Line(text.Cut(strings.TrimSpace(store), 300)); err == nil && e.store == "" {
		err = fmt.Errorf("%s info: its daemon does not answer", name)
	}
	return answer{e, err}
}

// lookPath finds a program in the PATH of an environment.
func lookPath(environ []string, name string) (string, error) {
	for _, dir := range filepath.SplitList(variable(environ, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if program, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return program, nil
		}
	}
	return "", fmt.Errorf("%s: it is not installed", name)
}

// variable returns the value of an environment's variable, or "".
func variable(environ []string, name string) string {
	value := ""
	for _, entry := range environ {
		if key, v, _ := strings.Cut(entry, "="); key == name {
			value = v
		}
	}
	return value
}

// choose returns the engine for a new cluster: the one that is asked for, by setting or
// by kind's own variable, or else the first that works. An error names all reasons.
func (p *Provider) choose(ctx context.Context, wanted string) (*engine, error) {
	by := fmt.Sprintf("the setting %s", Engine)
	if wanted == "" {
		wanted, by = variable(p.environ(), engineVariable), "the variable "+engineVariable
	}
	if wanted != "" {
		if _, err := kindOption(wanted); err != nil {
			return nil, fmt.Errorf("%s: %w", by, err)
		}
	}
	var reasons []string
	for _, a := range p.ask(ctx) {
		if wanted != "" && a.engine.name != wanted {
			continue
		}
		if a.err == nil {
			return a.engine, nil
		}
		reasons = append(reasons, a.err.Error())
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	fix := "install and start " + text.Or(engineNames())
	if wanted != "" {
		fix = fmt.Sprintf("start %s, or choose another engine (%s names it)", wanted, by)
	}
	return nil, fmt.Errorf("no container engine answers: %s: %s", strings.Join(reasons, "; "), fix)
}

// errNoEngine says that no engine answers.
var errNoEngine = errors.New("no container engine answers")

// working returns the engines that work: a cluster is looked for in all of them. The
// error wraps errNoEngine where there is none.
func (p *Provider) working(ctx context.Context) ([]*engine, error) {
	var all []*engine
	var reasons []string
	for _, a := range p.ask(ctx) {
		if a.err == nil {
			all = append(all, a.engine)
		} else {
			reasons = append(reasons, a.err.Error())
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: %s", errNoEngine, strings.Join(reasons, "; "))
	}
	return all, nil
}
