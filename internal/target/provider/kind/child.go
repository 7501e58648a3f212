package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	kindcluster "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/exec"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// Command is the name of the command that calls [Child]. Its one argument is the
// cluster's folder, by which the process is found.
const Command = "kind-create"

// The calls of kind.
const (
	callCreate = "create"
	callDelete = "delete"
	callLogs   = "logs"
)

// call is what Child is asked to do.
type call struct {
	Call       string `json:"call"`
	Engine     string `json:"engine"`
	Name       string `json:"name"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Config is kind's configuration, as YAML.
	Config string `json:"config,omitempty"`
	// Dir is where logs go.
	Dir string `json:"dir,omitempty"`
}

// A log has its error between these.
const (
	errorMark = "ERROR: "
	errorEnd  = "END OF ERROR"
)

// Child makes one call of kind's library, which cannot be interrupted: the call stands on
// in as JSON. Progress and the error go to out, without secrets. When in closes before
// the call has ended, nobody waits for it any more, and the process is killed with its
// group.
func Child(in io.Reader, out io.Writer) error {
	decoder := json.NewDecoder(in)
	var c call
	if err := decoder.Decode(&c); err != nil {
		return fmt.Errorf("reading what to do: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.do(out) }()
	closed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(closed)
	}()
	select {
	case err := <-ended:
		return err
	case <-closed:
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = process.End(ctx, os.Getpid(), 0)
	return errors.New("nobody waits for it any more")
}

func (c *call) do(out io.Writer) error {
	option, err := kindOption(c.Engine)
	if err != nil {
		return err
	}
	clean := redact.NewWriter(out)
	k := kindcluster.NewProvider(option, kindcluster.ProviderWithLogger(&logger{out: clean}))
	switch c.Call {
	case callCreate:
		err = k.Create(c.Name,
			kindcluster.CreateWithRawConfig([]byte(c.Config)),
			kindcluster.CreateWithKubeconfigPath(c.Kubeconfig),
			// Logs are wanted of what failed.
			kindcluster.CreateWithRetain(true),
			kindcluster.CreateWithDisplayUsage(false), kindcluster.CreateWithDisplaySalutation(false))
	case callDelete:
		err = k.Delete(c.Name, c.Kubeconfig)
	case callLogs:
		err = k.CollectLogs(c.Name, c.Dir)
	default:
		err = fmt.Errorf("unknown call %q", c.Call)
	}
	if err != nil {
		fmt.Fprintf(clean, "%s%s\n%s\n", errorMark, describeError(err), errorEnd)
	}
	return errors.Join(err, clean.Close())
}

// describeError is an error with the end of what its command printed.
func describeError(err error) string {
	failed := exec.RunErrorForError(err)
	if failed == nil {
		return err.Error()
	}
	said := strings.TrimSpace(text.CutFront(string(failed.Output), 4000))
	return text.Cut(err.Error(), 600) + "\n" + said
}

// logger writes what kind says; nodes are made at once, so several may speak.
type logger struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *logger) say(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.out, strings.TrimRight(s, "\n"))
}

// Warn and the others implement kind's log.Logger.
func (l *logger) Warn(s string)             { l.say(s) }
func (l *logger) Warnf(f string, a ...any)  { l.say(fmt.Sprintf(f, a...)) }
func (l *logger) Error(s string)            { l.say(s) }
func (l *logger) Errorf(f string, a ...any) { l.say(fmt.Sprintf(f, a...)) }
func (l *logger) V(level log.Level) log.InfoLogger {
	if level > 0 {
		return log.NoopInfoLogger{}
	}
	return infoLogger{l}
}

type infoLogger struct{ *logger }

func (l infoLogger) Info(s string)            { l.say(s) }
func (l infoLogger) Infof(f string, a ...any) { l.say(fmt.Sprintf(f, a...)) }
func (infoLogger) Enabled() bool              { return true }
