// Package fulldisk gives tests a folder on a disk that is full.
package fulldisk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Mount puts a disk of a few kilobytes over the empty folder dir, until the test
// ends. Only root can do that, on Linux: elsewhere the test is skipped.
func Mount(t testing.TB, dir string, kilobytes int) {
	t.Helper()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dk", kilobytes), "op-readiness-test", dir).CombinedOutput(); err != nil {
		t.Skipf("a full disk needs root on Linux: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("unmounting %s: %v: %s", dir, err, out)
		}
	})
}

// Fill fills the disk that dir is on, up to its last byte.
func Fill(t testing.TB, dir string) {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for err == nil {
		_, err = file.Write(make([]byte, 4<<10))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}
