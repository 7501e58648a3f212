package cli

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/e2e/e2etest"
)

// TestMain lets this test binary play e2e.test, and op-readiness itself where
// a test needs one that can be killed.
func TestMain(m *testing.M) {
	e2etest.Main()
	// A rehearsal calls this program by its name.
	if os.Getenv("OP_READINESS_TEST_MAIN") != "" || filepath.Base(os.Args[0]) == "op-readiness" {
		signals := make(chan os.Signal, 2)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		os.Exit(Main(context.Background(), os.Args[1:], Surroundings{
			Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals,
		}))
	}
	os.Exit(m.Run())
}
