package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
)

// What ends with this process does not end with the thread that asked for it.
func TestTheEndOfAThreadIsNoEndOfTheProcess(t *testing.T) {
	for _, last := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		cmd := exec.Command("cat")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var g *process.Group
		thread := onItsOwnThread(func() { g = start(t, cmd, last) })
		eventually(t, "the thread ends", func() bool {
			_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread))
			return err != nil
		})
		stdin.Close()
		if err := g.Wait(); err != nil {
			t.Errorf("tied by %v it ended with %v", last, err)
		}
	}
}

// onItsOwnThread calls f on a thread that ends afterwards, and returns its id. The
// process's first thread never ends.
func onItsOwnThread(f func()) int {
	thread := make(chan int)
	go func() {
		runtime.LockOSThread()
		if id := syscall.Gettid(); id != os.Getpid() {
			f()
			thread <- id
			return
		}
		thread <- onItsOwnThread(f)
		runtime.UnlockOSThread()
	}()
	return <-thread
}
