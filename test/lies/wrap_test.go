//go:build unix

package lies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

// wrap runs a suite as a child, and tells of it what the lie wants.
func (p *program) wrap(l *lie) (int, error) {
	path := p.Real
	if path == "" {
		path = os.Args[0]
	}
	report, args := "", slices.Clone(p.args)
	for i, arg := range args {
		if name, ok := strings.CutPrefix(arg, "--ginkgo.json-report="); ok && l.report != nil {
			report, args[i] = name, arg+".true"
		}
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", suiteEnv, p.start))
	out := &liner{edit: l.output}
	cmd.Stdout, cmd.Stderr = out, out
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	err := cmd.Wait()
	out.close()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	if report != "" {
		text, err := os.ReadFile(report + ".true")
		if err == nil {
			err = os.WriteFile(report, l.report(text), 0o644)
		}
		if err != nil {
			return 0, err
		}
	}
	code := cmd.ProcessState.ExitCode()
	if l.exit != nil {
		code = l.exit(code)
	}
	return code, nil
}

// reported edits a report as ginkgo's own types have it.
func reported(edit func(r *types.Report)) func(text []byte) []byte {
	return func(text []byte) []byte {
		var all []types.Report
		if err := json.Unmarshal(text, &all); err != nil || len(all) != 1 {
			panic(fmt.Sprintf("a report of %d suites: %v", len(all), err))
		}
		edit(&all[0])
		out, err := json.Marshal(all)
		if err != nil {
			panic(err)
		}
		return out
	}
}

// spec is the entry of a test in a report.
func spec(r *types.Report, name string) *types.SpecReport {
	for i := range r.SpecReports {
		if r.SpecReports[i].FullText() == name {
			return &r.SpecReports[i]
		}
	}
	panic("the report does not have " + name)
}

// becomes is a report in which a test has another state.
func becomes(name string, state types.SpecState) func(text []byte) []byte {
	return reported(func(r *types.Report) {
		s := spec(r, name)
		s.State, s.RunTime = state, time.Second
		if state.Is(types.SpecStateFailureStates) {
			s.Failure = types.Failure{Message: "expected a Windows node", TimelineLocation: types.TimelineLocation{Time: time.Now()}}
		}
		r.SuiteSucceeded = r.SuiteSucceeded && !state.Is(types.SpecStateFailureStates)
	})
}

// liner prints what is written to it line by line, as edit has it.
type liner struct {
	edit func(line string) []string
	rest []byte
}

func (l *liner) Write(p []byte) (int, error) {
	if l.edit == nil {
		return os.Stdout.Write(p)
	}
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		for _, line := range l.edit(string(l.rest[:i])) {
			fmt.Println(line)
		}
		l.rest = l.rest[i+1:]
	}
}

func (l *liner) close() { _, _ = os.Stdout.Write(l.rest) }

// replaced is a report in which a text, without spaces between, is another.
func replaced(old, with string) func([]byte) []byte {
	return func(text []byte) []byte {
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil {
			panic(err)
		}
		if !bytes.Contains(compact.Bytes(), []byte(old)) {
			panic("the report does not have " + old)
		}
		return bytes.ReplaceAll(compact.Bytes(), []byte(old), []byte(with))
	}
}

// inJSON edits a report as what it is, a list of suites.
func inJSON(edit func(suites []any) []any) func([]byte) []byte {
	return func(text []byte) []byte {
		var suites []any
		if err := json.Unmarshal(text, &suites); err != nil {
			panic(err)
		}
		out, err := json.Marshal(edit(suites))
		if err != nil {
			panic(err)
		}
		return out
	}
}

// stated is a report with any state, or none, of a test.
func stated(name string, state any) func([]byte) []byte {
	return inJSON(func(suites []any) []any {
		for _, s := range suites[0].(object)["SpecReports"].([]any) {
			if strings.HasSuffix(name, textOf(s.(object)["LeafNodeText"])) && textOf(s.(object)["LeafNodeText"]) != "" {
				s.(object)["State"] = state
				if state == nil {
					delete(s.(object), "State")
				}
			}
		}
		return suites
	})
}
