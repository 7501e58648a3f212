package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

func TestOurOwnTestsRunInTheirOwnProgram(t *testing.T) {
	own := planned("own", specs.Parallel)
	own.Name = "[sig-windows] [op-readiness] own"
	// Beside the others in phase and conditions, and yet not in their process.
	b := newBench(t, e2etest.Script{}, planned("a", specs.Parallel), planned("b", specs.Parallel), own)
	other := e2etest.Install(t, e2etest.Script{Version: "v1.36.3", Tests: []string{own.Name}, Suite: []string{e2etest.ExitOne, ""}})
	said := filepath.Join(t.TempDir(), "arguments")
	wrapper := filepath.Join(t.TempDir(), "op-readiness.test")
	script := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"$@\" >%q\nexec %q \"$@\"\n", said, other.Binary())
	if err := os.WriteFile(wrapper, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	b.options.OwnBinary = &e2e.Binary{Path: wrapper, Version: "v1.36.3"}
	b.options.Flags.Extra = []string{"--prepull-images=true"}
	b.options.OwnArgs = []string{"--readiness.shorten=2"}
	done := b.must()
	b.want(done, "a:passed b:passed own:passed,passed")
	upstream, ours := b.fake.Starts(t), other.Starts(t)
	if len(done.Batches) != 3 || slices.ContainsFunc(upstream, func(s string) bool { return strings.Contains(s, "own") }) || !slices.Contains(ours, own.Name) {
		t.Errorf("%d batches; e2e.test started %q, op-readiness.test %q", len(done.Batches), upstream, ours)
	}
	if all := suites(done); !strings.Contains(all, "op-readiness.test ended with exit code 1, and nothing failed") || strings.Contains(all, "e2e.test") {
		t.Errorf("suite failures %s", all)
	}
	arguments, err := os.ReadFile(said)
	if err != nil || !strings.Contains(string(arguments), "\n--readiness.shorten=2\n") || strings.Contains(string(arguments), "prepull") {
		t.Errorf("%v: op-readiness.test was started with\n%s", err, arguments)
	}
}
