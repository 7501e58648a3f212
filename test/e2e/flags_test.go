//go:build unix

package e2e_test

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/test/golden"
)

// The flags that are classified are those of the real e2e.test.
func TestEveryFlagOfE2ETestIsClassified(t *testing.T) {
	paths, err := need(t).Get(t.Context(), binaries.Pinned, binaries.E2ETest)
	if err != nil {
		t.Fatal(err)
	}
	// It prints its flags, and fails as Go's flag package wants it.
	help, _ := exec.CommandContext(t.Context(), paths[binaries.E2ETest], "--help").CombinedOutput()
	plain := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(string(help), "")
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^ +--?([A-Za-z][^\s,]*)`).FindAllStringSubmatch(plain, -1) {
		names = append(names, m[1])
		if err := e2e.CheckExtra([]string{"--" + m[1] + "=x"}); err != nil && strings.Contains(err.Error(), "knows no flag") {
			t.Errorf("--%s is in no class: see what it does, and add it to package e2e", m[1])
		}
	}
	slices.Sort(names)
	golden.Equal(t, "../../../internal/engine/e2e/testdata/flags-"+binaries.Pinned+".txt", strings.Join(slices.Compact(names), "\n")+"\n")
}
