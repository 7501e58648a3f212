//go:build unix

package kind_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kind"
)

// What engines do when they are asked.
const (
	answers = "#!/bin/sh\necho 27.1.0\n"
	// silent is a client of Docker without its daemon, of a version that calls this a
	// success.
	silent  = "#!/bin/sh\necho\necho 'Cannot connect to the Docker daemon' >&2\n"
	refuses = "#!/bin/sh\necho 'Cannot connect to the daemon. Is it running?' >&2\nexit 1\n"
	hangs   = "#!/bin/sh\nexec /bin/sleep 1000\n"
)

// providerWith is one whose PATH has only these engines.
func providerWith(t *testing.T, engines map[string]string, variables ...string) *kind.Provider {
	t.Helper()
	path := t.TempDir()
	for name, script := range engines {
		if err := os.WriteFile(filepath.Join(path, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &kind.Provider{Dir: filepath.Join(t.TempDir(), "clusters"), Environ: append(variables, "PATH="+path)}
}

func TestTheFirstEngineThatAnswersIsTaken(t *testing.T) {
	for name, test := range map[string]struct {
		engines   map[string]string
		variables []string
		set       string
		want      string
	}{
		"all answer":                      {engines: map[string]string{"docker": answers, "podman": answers, "nerdctl": answers}, want: "docker"},
		"a client without its daemon":     {engines: map[string]string{"docker": refuses, "podman": answers}, want: "podman"},
		"a client that says nothing":      {engines: map[string]string{"docker": silent, "podman": answers}, want: "podman"},
		"a client that hangs":             {engines: map[string]string{"docker": hangs, "nerdctl": answers}, want: "nerdctl"},
		"kind's own variable":             {engines: map[string]string{"docker": answers, "podman": answers}, variables: []string{"KIND_EXPERIMENTAL_PROVIDER=podman"}, want: "podman"},
		"a setting":                       {engines: map[string]string{"docker": answers, "nerdctl": answers}, variables: []string{"KIND_EXPERIMENTAL_PROVIDER=docker"}, set: "nerdctl", want: "nerdctl"},
		"a file that cannot be a program": {engines: map[string]string{"docker": "no program", "podman": answers}, want: "podman"},
	} {
		t.Run(name, func(t *testing.T) {
			p := providerWith(t, test.engines, test.variables...)
			if test.engines["docker"] == hangs {
				p.AskWithin(500 * time.Millisecond)
			}
			r := aRequest()
			if test.set != "" {
				r.Set = map[string]string{kind.Engine: test.set}
			}
			plan, err := p.Plan(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if plan.Set[kind.Engine] != test.want {
				t.Errorf("it takes %s, want %s", plan.Set[kind.Engine], test.want)
			}
		})
	}
}

func TestWhereNoEngineAnswersAllReasonsAreNamed(t *testing.T) {
	p := providerWith(t, map[string]string{"docker": refuses, "podman": hangs})
	p.AskWithin(200 * time.Millisecond)
	_, err := p.Plan(t.Context(), aRequest())
	wants(t, err, "docker info", "Cannot connect to the daemon. Is it running?", "podman info", "no answer within 200ms", "nerdctl: it is not installed", "install and start")
}

func TestTheEngineThatIsNamedMustAnswer(t *testing.T) {
	p := providerWith(t, map[string]string{"docker": answers, "podman": refuses}, "KIND_EXPERIMENTAL_PROVIDER=podman")
	_, err := p.Plan(t.Context(), aRequest())
	wants(t, err, "podman info", "KIND_EXPERIMENTAL_PROVIDER")
	if strings.Contains(err.Error(), "docker") {
		t.Errorf("nobody asked for docker: %v", err)
	}
	p = providerWith(t, map[string]string{"docker": answers}, "KIND_EXPERIMENTAL_PROVIDER=lxc")
	_, err = p.Plan(t.Context(), aRequest())
	wants(t, err, `"lxc"`, "docker, podman or nerdctl")
}

// aRequest is one that is fine.
func aRequest() provider.Request {
	r := provider.DefaultRequest()
	r.KubernetesVersion = ""
	return r
}

// wants checks that an error has all these parts.
func wants(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
}
