package e2e_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// TestMain lets this test binary play e2e.test, and a runner of it.
func TestMain(m *testing.M) {
	e2etest.Main()
	if path := os.Getenv("E2E_TEST_RUNNER"); path != "" {
		runner(path)
	}
	os.Exit(m.Run())
}

// runner starts e2e.test, tells its process id, and waits for it.
func runner(path string) {
	b := &e2e.Binary{Path: path}
	p, err := b.Start(e2e.FocusArgs([]string{"[sig-x] a"}), os.Environ(), os.Stderr)
	if err != nil {
		panic(err)
	}
	fmt.Println(p.PID, p.Start)
	<-p.Done()
	os.Exit(0)
}
