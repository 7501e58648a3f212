package e2e_test

import (
	"os"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/e2e/e2etest"
)

// TestMain lets this test binary play e2e.test, and a runner of it.
func TestMain(m *testing.M) {
	e2etest.Main()
	if path := os.Getenv("E2E_TEST_RUNNER"); path != "" {
		runner(path)
	}
	os.Exit(m.Run())
}
