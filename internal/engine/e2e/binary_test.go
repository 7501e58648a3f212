package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// program writes a file that is to pass for e2e.test.
func program(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "e2e.test")
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenRefusesWhatIsNoE2ETest(t *testing.T) {
	fake := e2etest.Install(t, e2etest.Script{Version: "v1.35.4"})
	missing := filepath.Join(t.TempDir(), "e2e.test")
	for what, c := range map[string]struct{ path, want, says string }{
		"a missing file":           {missing, "", "no e2e.test at " + missing + ": get one with 'op-readiness e2e fetch e2e.test'"},
		"a folder":                 {t.TempDir(), "", "is not a file"},
		"a file without the x bit": {program(t, "#!/bin/sh\necho v1.36.3\n", 0o644), "", "is not executable: chmod +x"},
		"a file of garbage":        {program(t, "\x7fELF\x02\x01\x01 garbage", 0o755), "", "is not a program for"},
		"a text":                   {program(t, "v1.36.3", 0o755), "", "is not a program for"},
		"a program without a word": {program(t, "#!/bin/sh\n", 0o755), "", `it says "", not one like v1.36.3`},
		"a program that babbles":   {program(t, "#!/bin/sh\nprintf 'hello\\377world'\n", 0o755), "", "it says \"hello\uFFFDworld\", not one like"},
		"a build without version":  {program(t, "#!/bin/sh\necho 'v0.0.0-master+$Format:%H$'\n", 0o755), "", "is no e2e.test"},
		"a program that fails":     {program(t, "#!/bin/sh\necho 'flag provided but not defined' >&2\nexit 2\n", 0o755), "", `--version: exit status 2: it said "flag provided but not defined"`},
		"a program that dies":      {program(t, "#!/bin/sh\nkill -9 $$\n", 0o755), "", "signal: killed"},
		"another version":          {fake.Binary(), "v1.36.3", "is e2e.test v1.35.4, and v1.36.3 is asked for"},
	} {
		_, err := e2e.Open(t.Context(), c.path, c.want)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q", what, err, c.says)
		}
	}
}

func TestOpenDoesNotWaitForAProgramThatHangs(t *testing.T) {
	path := program(t, "#!/bin/sh\nsleep 1000\n", 0o755)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := e2e.Open(ctx, path, ""); err == nil || !strings.Contains(err.Error(), "--version hangs") {
		t.Errorf("error %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := e2e.Open(ctx, path, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func open(t *testing.T, script e2etest.Script) *e2e.Binary {
	t.Helper()
	b, err := e2e.Open(t.Context(), e2etest.Install(t, script).Binary(), "")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestListOfAWorkingBinary(t *testing.T) {
	b := open(t, e2etest.Script{Version: "v1.36.3"})
	list, err := b.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if b.Version != "v1.36.3" || list.Version != "v1.36.3" || len(list.Tests) != 7579 {
		t.Errorf("version %s, list of %s with %d tests", b.Version, list.Version, len(list.Tests))
	}
}

func TestListRefusesWhatIsNoList(t *testing.T) {
	for what, script := range map[string]string{
		"nothing":         "#!/bin/sh\n[ $1 = --version ] && echo v1.36.3\nexit 0\n",
		"garbage":         "#!/bin/sh\nhead -c 100000 /dev/urandom; [ $1 = --list-tests ]\n",
		"half of a list":  "#!/bin/sh\necho \"The following spec names can be used with 'ginkgo run --focus/skip':\"; printf '    a.go:1: [sig'\n",
		"output no end":   "#!/bin/sh\nyes | head -c 100000000\n",
		"an error midway": "#!/bin/sh\necho \"The following spec names can be used with 'ginkgo run --focus/skip':\"; echo '    a.go:1: [sig-a] a'; exit 1\n",
	} {
		b := &e2e.Binary{Path: program(t, script, 0o755), Version: "v1.36.3"}
		if list, err := b.List(t.Context()); err == nil || !strings.Contains(err.Error(), b.Path) {
			t.Errorf("%s: list %v, error %v", what, list != nil, err)
		}
	}
}

func TestDryRun(t *testing.T) {
	tests := []string{"[sig-a] one", "[sig-a] one and more", "[sig-a] two [Slow]"}
	names := tests[:2]
	for what, c := range map[string]struct {
		script e2etest.Script
		names  []string
		says   string
	}{
		"exactly the tests":      {e2etest.Script{Version: "v1.36.3", Tests: tests}, names, ""},
		"a test that is missing": {e2etest.Script{Version: "v1.36.3", Tests: tests[1:]}, names, "would run 1 tests, and it lists 1 of the 2"},
		"garbage":                {e2etest.Script{Version: "v1.36.3", Tests: tests, Suite: []string{e2etest.Garbage}}, names, "does not say what it would run"},
		"nothing at all":         {e2etest.Script{Version: "v1.36.3", Tests: tests, Suite: []string{e2etest.Nothing}}, names, `it said ""`},
		"a crash":                {e2etest.Script{Version: "v1.36.3", Tests: tests, Suite: []string{e2etest.Kill}}, names, "signal: killed"},
	} {
		err := open(t, c.script).DryRun(t.Context(), c.names)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v, want %q", what, err, c.says)
		}
	}
}

func TestOpenOwnRefusesAnotherSuite(t *testing.T) {
	own := func(version, hash string) string {
		return program(t, "#!/bin/sh\ncase $1 in --version) echo "+version+";; --suite-version) echo "+hash+";; esac\n", 0o755)
	}
	for what, c := range map[string]struct{ path, says string }{
		"one that fits":           {own("v1.36.3", "h1:ours"), ""},
		"of another patch":        {own("v1.36.9", "h1:ours"), ""},
		"of another minor":        {own("v1.35.4", "h1:ours"), "is op-readiness.test for Kubernetes 1.35, and the tests are those of v1.36.3"},
		"of other sources":        {own("v1.36.3", "h1:theirs"), `its sources are "h1:theirs", not h1:ours`},
		"that does not say":       {own("v1.36.3", ""), `its sources are "", not h1:ours`},
		"that is an e2e.test":     {e2etest.Install(t, e2etest.Script{Version: "v1.36.3"}).Binary(), "not h1:ours"},
		"that is not there":       {filepath.Join(t.TempDir(), "gone"), "no op-readiness.test at "},
		"that is without version": {own("''", "h1:ours"), "is no op-readiness.test"},
	} {
		_, err := e2e.OpenOwn(t.Context(), c.path, "v1.36.3", "h1:ours")
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q", what, err, c.says)
		}
	}
}

func TestOnlyItsOwnFlagsArePassedToOurSuite(t *testing.T) {
	if err := e2e.CheckOwn([]string{"--readiness.shorten=10", "--readiness.wait-at-most=30s", "-readiness.target-os=linux"}); err != nil {
		t.Error(err)
	}
	for _, arg := range []string{"--ginkgo.focus=x", "--kubeconfig=x", "readiness.shorten=10", "--readiness.shorten", "--readiness", "--readiness.nonsense=7", "--readiness.shorten=abc", "--readiness.shorten=0.5", "--readiness.shorten=NaN", "--readiness.wait-at-most=-1s", "--readiness.wait-at-most=5", "--readiness.target-os=macos", "--", ""} {
		if err := e2e.CheckOwn([]string{arg}); err == nil {
			t.Errorf("%q is passed on", arg)
		}
	}
	if err := e2e.CheckExtra([]string{"--readiness.shorten=10"}); err == nil || !strings.Contains(err.Error(), "--suite-arg") {
		t.Errorf("as a flag of e2e.test: %v", err)
	}
}
