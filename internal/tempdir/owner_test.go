//go:build unix

package tempdir_test

import (
	"os"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/tempdir"
)

func TestAnothersFolderStays(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives folders away")
	}
	killed, left := another(t, inTemp(t))
	kill(killed)
	if err := os.Chown(left, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	dir, err := tempdir.New()
	if err != nil {
		t.Fatal(err)
	}
	defer dir.RemoveAll()
	if _, err := os.Stat(left); err != nil {
		t.Error(err)
	}
}
