package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/test/actionstest"
)

func TestMaskTellsTheRunnerWhatIsSecret(t *testing.T) {
	for _, environ := range [][]string{nil, {"GITHUB_ACTIONS=true"}} {
		var out, errs strings.Builder
		config := "apiVersion: v1\nusers: [{name: me, user: {password: '50%::error::x'}}]\n"
		code := Main(t.Context(), []string{"mask"}, Surroundings{Environ: environ, Stdin: strings.NewReader(config), Stdout: &out, Stderr: &errs})
		want := actionstest.Command{Name: "add-mask", Data: "50%25::error::x"}
		if obeyed := actionstest.Obeyed(out.String()); code != 0 || !slices.Contains(obeyed, want) {
			t.Errorf("exit code %d, the runner obeys %q: %s", code, obeyed, errs.String())
		}
	}
	var out, errs strings.Builder
	code := Main(t.Context(), []string{"mask"}, Surroundings{Stdin: strings.NewReader("users: [{token: s3cret"), Stdout: &out, Stderr: &errs})
	if code != verdict.ExitUsage || out.Len() > 0 || strings.Contains(errs.String(), "s3cret") || !strings.Contains(errs.String(), "kubeconfig: its secrets cannot be masked, so it is not used: it is not YAML") {
		t.Errorf("exit code %d: %s%s", code, out.String(), errs.String())
	}
}
