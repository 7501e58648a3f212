package e2e

import (
	"fmt"
	"io"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// WriteCommands writes a shell script that runs a plan by hand. binaries are the paths
// of the suites' test binaries; for one that has none, fetch returns the command that
// prints it.
func WriteCommands(w io.Writer, p *result.Plan, binaries map[specs.Suite]string, fetch func(specs.Suite) []string) error {
	fmt.Fprintf(w, "# Kubernetes %s; run each line by itself, with KUBECONFIG set\n", p.KubernetesVersion)
	flags := Flags{Provider: p.Provider}
	var names []string
	for i := range p.Tests {
		t := &p.Tests[i]
		names = append(names, t.Name)
		if i+1 < len(p.Tests) {
			if next := &p.Tests[i+1]; next.Phase == t.Phase && next.Conditions == t.Conditions && specs.SuiteOf(next.Name) == specs.SuiteOf(t.Name) {
				continue
			}
		}
		fmt.Fprintf(w, "\n# %s, %s: %s\n", t.Phase, t.Conditions, text.Count(len(names), "test"))
		suite := specs.SuiteOf(t.Name)
		line := shellQuote(binaries[suite])
		if binaries[suite] == "" {
			line = `"$(` + shellLine(fetch(suite)) + `)"`
		}
		args := append(append(flags.Args(), "--ginkgo.v"), FocusArgs(names)...)
		if _, err := fmt.Fprintln(w, line, shellLine(args)); err != nil {
			return err
		}
		names = nil
	}
	return nil
}

// shellLine writes words for a POSIX shell.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellQuote(word)
	}
	return strings.Join(quoted, " ")
}

// shellQuote quotes a word for a POSIX shell where it must be.
func shellQuote(word string) string {
	safe := strings.IndexFunc(word, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./,:", r)
	}) < 0
	if safe {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
