package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kind"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/ledger"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// made are folders that several tests share.
var made []string

// TestMain lets this test binary play e2e.test, and op-readiness itself where
// a test needs one that can be killed.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "op-readiness" && os.Getenv("OP_READINESS_TEST_PARSE") != "" {
		if err := parseOnly(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(verdict.ExitUsage)
		}
		return
	}
	// The provider of kind calls this program, whatever it is, and without this it would
	// run all tests again.
	if len(os.Args) > 2 && os.Args[1] == "cluster" && os.Args[2] == kind.Command {
		os.Exit(Process())
	}
	e2etest.Main()
	// A rehearsal calls this program by its name.
	if os.Getenv("OP_READINESS_TEST_MAIN") != "" || filepath.Base(os.Args[0]) == "op-readiness" {
		os.Exit(Process())
	}
	dir, err := os.MkdirTemp("", "cli-ledger-")
	if err != nil {
		panic(err)
	}
	made = append(made, dir)
	if err := os.Setenv(ledger.Variable, dir); err != nil {
		panic(err)
	}
	code := m.Run()
	for _, dir := range made {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// parseOnly plays op-readiness for an example that cannot be run: it finds the
// command, and takes its flags and arguments.
func parseOnly(args []string) error {
	root := Root()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if cmd.RunE == nil {
		return fmt.Errorf("%s does nothing", cmd.CommandPath())
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
