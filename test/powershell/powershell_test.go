package powershell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/test/powershell"
)

func parser(t *testing.T) *powershell.Parser {
	t.Helper()
	p, err := powershell.Find()
	if err != nil {
		t.Skipf("PowerShell is NOT parsed: %v: get node and npm, and a network once", err)
	}
	return p
}

// scripts are those that run on Windows nodes: our tests', and what collects logs.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, folder := range []string{"../../suite/host", "../../internal/target/nodelogs/scripts"} {
		paths, err := filepath.Glob(folder + "/*.ps1")
		if err != nil || len(paths) == 0 {
			t.Fatalf("no scripts in %s: %v", folder, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found[path] = string(text)
		}
	}
	return found
}

func TestTheScriptsArePowerShell(t *testing.T) {
	all := scripts(t)
	found, err := parser(t).Errors(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for name := range all {
		if errors, parsed := found[name]; !parsed || len(errors) > 0 {
			t.Errorf("%s: parsed %v, with errors %v", name, parsed, errors)
		}
	}
}

func TestBrokenScriptsAreFound(t *testing.T) {
	broken := map[string]string{
		"a brace too few":   "if ($env:PORT) { 'open'",
		"a brace too many":  "if ($env:PORT) { 'open' } }",
		"an open text":      "Write-Output 'never ended",
		"an open here-text": "$source = @'\nusing System;\n",
		"no condition":      "if { 'open' }",
		"no value":          "@{ rules = }",
	}
	// Those that we have, cut off before their last brace, too.
	for name, text := range scripts(t) {
		broken[name+", cut"] = text[:strings.LastIndex(text, "}")]
	}
	found, err := parser(t).Errors(t.Context(), broken)
	if err != nil {
		t.Fatal(err)
	}
	for name := range broken {
		if len(found[name]) == 0 {
			t.Errorf("%s: no syntax error is found", name)
		}
	}
}
