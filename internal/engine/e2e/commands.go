package e2e

import (
	"fmt"
	"io"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// WriteCommands writes a shell script that runs a plan by hand.
func WriteCommands(w io.Writer, p *result.Plan) error {
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
		fmt.Fprintf(w, "\n# %s, %s: %d tests\n", t.Phase, t.Conditions, len(names))
		line := specs.SuiteOf(t.Name).Program()
		for _, arg := range append(append(flags.Args(), "--ginkgo.v"), FocusArgs(names)...) {
			line += " " + shellQuote(arg)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
		names = nil
	}
	return nil
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
