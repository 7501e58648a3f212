package realnode

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/program"
)

// box is a process with namespaces of its own, and all that runs in them. When
// it ends, so do they.
type box struct {
	pid int
	// restarted is set before ended is closed: a program in the box had the
	// kernel restart the machine, which is the box to it.
	restarted bool
	// ended is closed when the box has ended, and all its processes with it.
	ended chan struct{}
}

// namespaces are those that a box has of its own.
const namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC

// boxName is an argument of every box, by which one that was left is found.
const boxName = "op-readiness-node-box"

// boxScript is the first process of a box, with the folder for what is the
// box's own as $1, its boot id as $2, and then the machine's folders that it
// covers.
//
// Programs in the box must not change what it shares with the machine. The
// kubelet sets some of the kernel's parameters, so it finds them set, in files
// of the box.
const boxScript = `set -eu
mount --make-rprivate /
mount --make-rshared /
mount -t proc proc /proc
mount -t tmpfs -o mode=755 tmpfs /run
own=$1 boot_id=$2; shift 2
for dir; do
	mkdir -p "$own$dir"
	mount --bind "$own$dir" "$dir"
done
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
	kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000 kernel/random/boot_id=$boot_id; do
	file=${setting%=*}
	[ -e "/proc/sys/$file" ] || continue
	mkdir -p "$own/proc-sys/${file%/*}"
	echo "${setting#*=}" >"$own/proc-sys/$file"
	mount --bind "$own/proc-sys/$file" "/proc/sys/$file"
done
[ ! -e /proc/sysrq-trigger ] || mount --bind /dev/null /proc/sysrq-trigger
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward
echo ready
# The first process of a namespace also takes care of orphans that have ended.
while :; do
	sleep 3600 &
	wait $!
done
`

// newBox makes a box that keeps what is its own in the folder own, and in
// which each of covered, folders that must exist, is that of the same name in
// own.
func newBox(ctx context.Context, own, bootID string, covered ...string) (*box, error) {
	cmd := exec.Command("/bin/sh", append([]string{"-c", boxScript, boxName, own, bootID}, covered...)...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: namespaces,
		// The box ends with this process, even when that is killed.
		Pdeathsig: syscall.SIGKILL,
	}
	var problems bytes.Buffer
	cmd.Stderr = &problems
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	b := &box{ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(b.ended)
		// The box is tied to the thread that starts it: keep that one.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			b.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			state, err := cmd.Process.Wait()
			b.restarted = err == nil && asksForRestart(state)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("making a box: %w", err)
	}
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		said <- strings.TrimSpace(line)
	}()
	select {
	case line := <-said:
		if line == "ready" {
			return b, nil
		}
		b.end()
		return nil, fmt.Errorf("making a box: %s", strings.TrimSpace(problems.String()))
	case <-ctx.Done():
		b.end()
		return nil, context.Cause(ctx)
	}
}

// alive tells whether there is a box, and it has not ended.
func (b *box) alive() bool {
	if b == nil {
		return false
	}
	select {
	case <-b.ended:
		return false
	default:
		return true
	}
}

// asksForRestart tells whether the first process of a namespace ended as the
// kernel ends it when one of its processes calls reboot(2) to restart.
func asksForRestart(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGHUP
}

// end kills everything in the box and waits until it is gone.
func (b *box) end() {
	_ = syscall.Kill(b.pid, syscall.SIGKILL)
	<-b.ended
}

// command returns a command that runs in the box. Ending it does not end what
// it runs; the box's end does.
func (b *box) command(ctx context.Context, args ...string) *exec.Cmd {
	enter := []string{"--target", strconv.Itoa(b.pid), "--mount", "--net", "--pid", "--ipc", "--"}
	return exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
}

// run runs a command in the box to its end and returns what it prints.
func (b *box) run(ctx context.Context, args ...string) (string, error) {
	return program.Output(b.command(ctx, args...))
}

// endLeftBoxes ends the boxes that killed processes have left, though boxes
// end with them: whoever may do so has the only node of this machine.
func endLeftBoxes(ctx context.Context, dir string) error {
	for {
		left, err := boxes(dir)
		if err != nil || len(left) == 0 {
			return err
		}
		for _, pid := range left {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("ending process %d: %w", pid, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for processes %v to end: %w", left, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// boxes returns the first processes of boxes that keep what is theirs below dir.
func boxes(dir string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// One that has ended meanwhile has no command line.
		line, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		args := strings.Split(string(line), "\x00")
		if i := slices.Index(args, boxName); i > 0 && i+1 < len(args) && strings.HasPrefix(args[i+1], dir+"/") {
			found = append(found, pid)
		}
	}
	return found, nil
}
