//go:build linux

package realnode_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/test/nodetest"
	"github.com/windows-op-readiness/windows-op-readiness/test/realnode"
)

// TestMain lets this test binary play a process that is to be killed, and one
// that is not root.
func TestMain(m *testing.M) {
	switch os.Getenv("REALNODE_TEST_ROLE") {
	case "up":
		os.Exit(upForever())
	case "check":
		fmt.Println(realnode.Check(context.Background()))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// upForever makes a node, says so, and waits to be killed.
func upForever() int {
	dir, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		panic(err)
	}
	options := realnode.DefaultOptions()
	options.Binaries, options.Nodes = &binaries.Store{Dir: dir}, 2
	if options.CoreDNS, err = realnode.CoreDNSPath(dir); err != nil {
		panic(err)
	}
	if _, err := realnode.Up(context.Background(), options); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("up")
	select {}
}

// settings are those of the kernel that a kubelet changes.
var settings = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "net/ipv4/ip_forward"}

// alone is what machine sees while nobody else can have a node.
func alone(t *testing.T) string {
	t.Helper()
	unlock, err := realnode.Lock(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	return machine(t)
}

// machine is what can be seen of a node from outside.
func machine(t *testing.T) string {
	t.Helper()
	var found strings.Builder
	for _, name := range settings {
		value, _ := os.ReadFile(filepath.Join("/proc/sys", name))
		fmt.Fprintf(&found, "%s = %s", name, value)
	}
	for _, dir := range []string{realnode.StateDir, "/var/lib/cni", "/var/lib/kubelet"} {
		if _, err := os.Stat(dir); err == nil {
			fmt.Fprintln(&found, "folder", dir)
		}
	}
	for _, device := range []string{"opr-node", "opr-node-2"} {
		if _, err := net.InterfaceByName(device); err == nil {
			fmt.Fprintln(&found, "network device", device)
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/op-readiness-node*", "/sys/fs/cgroup/*/op-readiness-node*"} {
		cgroups, _ := filepath.Glob(pattern)
		for _, dir := range cgroups {
			fmt.Fprintln(&found, "cgroup", dir)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "op-readiness-node") {
			fmt.Fprint(&found, "mount ", line)
		}
	}
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range commands {
		if line, _ := os.ReadFile(file); bytes.Contains(line, []byte(realnode.StateDir)) {
			fmt.Fprintln(&found, "process", strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found.String()
}

func TestNothingIsLeft(t *testing.T) {
	options := nodetest.Options(t)
	options.Nodes = 2
	if err := realnode.Clean(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	before := alone(t)
	same := func(t *testing.T) {
		t.Helper()
		if after := alone(t); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
	}
	t.Run("of a node that was removed", func(t *testing.T) {
		node, err := realnode.Up(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		kernel, _, _ := strings.Cut(before, "folder")
		if during := machine(t); during == before {
			t.Error("nothing of a node is to be seen while it is there")
		} else if !strings.HasPrefix(during, kernel) {
			t.Errorf("settings of the kernel changed:\n%s\nto:\n%s", before, during)
		}
		if err := node.Down(); err != nil {
			t.Error(err)
		}
		same(t)
	})
	t.Run("of one that was interrupted in the making", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		options.Progress = on("starting containerd", cancel)
		if _, err := realnode.Up(ctx, options); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		same(t)
	})
	t.Run("of one whose process was killed", func(t *testing.T) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "REALNODE_TEST_ROLE=up")
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := make([]byte, 2)
		if _, err := io.ReadFull(stdout, said); err != nil || string(said) != "up" {
			rest, _ := io.ReadAll(stdout)
			t.Fatalf("%s%s: %v", said, rest, err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if err := realnode.Clean(t.Context(), nil); err != nil {
			t.Error(err)
		}
		same(t)
	})
}

// on calls do when what is written contains text.
func on(text string, do func()) io.Writer {
	return writer(func(p []byte) {
		if bytes.Contains(p, []byte(text)) {
			do()
		}
	})
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

func TestOneAtATime(t *testing.T) {
	node := nodetest.Up(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	options := nodetest.Options(t)
	options.Progress = on("waiting for another process", cancel)
	if _, err := realnode.Up(ctx, options); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if log := node.Nodes[0].Log(realnode.Kubelet); log == "" {
		t.Error("the first one has no log")
	}
	if _, err := os.Stat(node.Cluster.Kubeconfig); err != nil {
		t.Errorf("the second has removed the first: %v", err)
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Run("programs", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		err := realnode.Check(t.Context())
		var unfit *realnode.UnfitError
		if !errors.As(err, &unfit) {
			t.Fatalf("error %v, want an UnfitError", err)
		}
		for _, want := range []string{"programs: ", "containerd", "runc", "nft", "conntrack", "a static busybox"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in: %v", want, err)
			}
		}
	})
	t.Run("root", func(t *testing.T) {
		cmd := exec.Command(os.Args[0])
		if os.Geteuid() == 0 {
			// Where this binary lies, others may not look.
			program := filepath.Join(os.TempDir(), fmt.Sprintf("realnode-test-%d", os.Getpid()))
			data, err := os.ReadFile(os.Args[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(program, data, 0o755); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(program)
			cmd = exec.Command(program)
			cmd.Dir = "/"
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		cmd.Env = append(os.Environ(), "REALNODE_TEST_ROLE=check")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if !strings.Contains(string(out), "root (run as root)") {
			t.Errorf("%s", out)
		}
	})
}

// Where all is there, or apt is not, Install neither says nor does anything.
func TestInstallKeepsQuietWhereThereIsNothingToDo(t *testing.T) {
	nodetest.Options(t)
	var said bytes.Buffer
	if err := realnode.Install(t.Context(), &said); err != nil || said.Len() > 0 {
		t.Errorf("%v, said %q", err, &said)
	}
	t.Setenv("PATH", t.TempDir())
	if err := realnode.Install(t.Context(), &said); err != nil || said.Len() > 0 {
		t.Errorf("without apt: %v, said %q", err, &said)
	}
}
