package realnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/program"
)

// localPrograms is the folder in which the box has its own shutdown and reboot:
// programs there are found before all others.
const localPrograms = "/usr/local/sbin"

// shutdownScript is shutdown and reboot in a box; $request is the file by which
// it asks for the reboot.
const shutdownScript = `#!/bin/sh
# In the box of a real node, this reboots the box. The machine itself knows
# nothing of it.
set -eu
request=%s
restart= seconds=60
case ${0##*/} in reboot) restart=yes seconds=0 ;; esac
for arg; do
	case $arg in
	-r | --reboot) restart=yes ;;
	now | +0) seconds=0 ;;
	+[1-9] | +[1-9][0-9]) seconds=$((${arg#+} * 60)) ;;
	*) echo "${0##*/}: $arg: this node knows -r, now and +MINUTES" >&2; exit 1 ;;
	esac
done
if [ -z "$restart" ]; then
	echo "${0##*/}: this node can be rebooted and not switched off: use -r" >&2
	exit 1
fi
echo "$seconds" >"$request.new"
mv "$request.new" "$request"
echo "This node reboots in $seconds seconds."
`

// makeFolders makes the node's folders, and in its own part of the machine's
// programs those that reboot it.
func (n *Node) makeFolders() error {
	local := filepath.Join(n.own(), localPrograms)
	for _, dir := range []string{filepath.Dir(n.log("")), local} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	// The box's covers the machine's.
	if _, err := program.Output(exec.Command("cp", "--archive", localPrograms+"/.", local)); err != nil {
		return err
	}
	script := fmt.Appendf(nil, shutdownScript, n.request())
	for _, name := range []string{"shutdown", "reboot"} {
		file := filepath.Join(local, name)
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(file, script, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// request is the file with the seconds after which the node is to be rebooted.
func (p paths) request() string { return p.file("reboot") }

// NextBoot says how the node starts after reboots from now on.
func (n *Node) NextBoot(boot Boot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next = boot
}

// Reboot ends everything in the box, and starts it again with another boot id, as
// [Node.NextBoot] has said. What was in memory is gone: processes, mounts, network
// devices, rules and the folder /run. Files stay. It waits until the node is ready
// again, unless it cannot be.
func (n *Node) Reboot(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	n.endBox()
	if err := os.Remove(n.request()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := removeCgroups(n.cgroup); err != nil {
		return err
	}
	if !n.next.SameID {
		n.bootID = newBootID()
	}
	if err := n.makeBox(ctx); err != nil {
		return err
	}
	return n.startAll(ctx, n.next)
}

// watch reboots nodes that are told to, until Down or until ctx ends.
func (b *Bed) watch(ctx context.Context) {
	ctx, b.stop = context.WithCancel(ctx)
	for _, n := range b.Nodes {
		b.watching.Go(func() {
			tick := time.NewTicker(200 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				if !n.asked() {
					continue
				}
				tell(b.options.Progress, "%s reboots, as it was told to", n.Name)
				if err := n.Reboot(ctx); err != nil && ctx.Err() == nil {
					b.faults.add(fmt.Errorf("rebooting %s: %w", n.Name, err))
				}
			}
		})
	}
}

// asked tells whether the node is to be rebooted now: somebody asked for it, and
// the time has come; or a program in it has called reboot(2).
func (n *Node) asked() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.box.alive() {
		return n.box != nil && n.box.restarted
	}
	said, err := os.ReadFile(n.request())
	if err != nil {
		return false
	}
	seconds, err := strconv.Atoi(strings.TrimSpace(string(said)))
	if err != nil {
		return false
	}
	info, err := os.Stat(n.request())
	return err == nil && time.Since(info.ModTime()) >= time.Duration(seconds)*time.Second
}
