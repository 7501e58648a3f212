package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
)

// withCache runs op-readiness with the cache in dir.
func withCache(ctx context.Context, dir string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	s := Surroundings{
		Environ: append(os.Environ(), "OP_READINESS_CACHE="+dir),
		Stdin:   strings.NewReader(""), Stdout: &out, Stderr: &errs,
	}
	code = Main(ctx, args, s)
	return code, out.String(), errs.String()
}

func TestWrongUsageOfE2EAndCluster(t *testing.T) {
	for args, says := range map[string]string{
		"e2e fetch kubefoo":                                        "unknown binary \"kubefoo\": use agnhost, e2e.test, etcd",
		"e2e fetch --kubernetes-version latest":                    "--kubernetes-version: \"latest\" is not a released",
		"e2e fetch --kubernetes-version v1.33.4 op-readiness.test": "op-readiness.test is for Kubernetes 1.34 and newer, and not for v1.33.4",
		"e2e fetch --source mirror":                                "--source: unknown source \"mirror\": use auto, release, build",
		"e2e list -o yaml":                                         "--output: unknown format \"yaml\": use table, json",
		"e2e list now":                                             "unknown command \"now\"",
		"cluster up":                                               "accepts 1 arg(s), received 0",
		"cluster up kind --set colour=red":                         "unknown setting \"colour\": kind has config, engine, image",
		"cluster up kwok --windows-version xp":                     "use ltsc2019, ltsc2022, ltsc2025",
		"cluster up kwok --linux-nodes -1":                         "-1 Linux nodes",
		"cluster up kwok --name Upper":                             "lower-case",
		"cluster up kwok --set bind-address=everywhere":            "bind-address \"everywhere\"",
		"cluster up kwok --set colour=red":                         "unknown setting \"colour\": kwok has bind-address",
		"cluster up kwok --expires 1s":                             "--expires: at least 1m",
		"cluster up docker":                                        "unknown provider \"docker\": use kwok",
		"cluster render docker":                                    "unknown provider \"docker\": use kwok",
		"cluster down --run":                                       "flag needs an argument",
		"cluster down a --run b":                                   "leave the name out",
		"cluster reap --provider docker":                           "unknown provider \"docker\": use kwok",
		"cluster reap --older-than -1s":                            "not less than 0",
		"cluster logs a":                                           "--out",
		"run --keep-on-failure 1h":                                 "add --cluster",
		"run --cluster docker":                                     "unknown provider \"docker\": use kwok",
		"cluster down a --name b":                                  "two clusters named",
		"cluster down ../a":                                        "lower-case",
		"cluster list -o yaml":                                     "use table, json",
	} {
		dir := t.TempDir()
		code, stdout, stderr := withCache(t.Context(), dir, strings.Fields(args)...)
		if code != verdict.ExitUsage || stdout != "" || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q; want %d and %q", args, code, stdout, stderr, verdict.ExitUsage, says)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: wrote %v before it found the fault", args, left)
		}
	}
}

func TestListsOfAnEmptyCache(t *testing.T) {
	for _, args := range []string{"e2e list -o json", "cluster list -o json"} {
		code, stdout, stderr := withCache(t.Context(), t.TempDir(), strings.Fields(args)...)
		if code != verdict.ExitReady || stdout != "[]\n" || stderr != "" {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

func TestE2EListTellsOfAChangedBinary(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kubernetes", "v1.36.3", "linux-amd64", "ginkgo")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	record := `{"name": "ginkgo", "version": "v1.36.3", "os": "linux", "arch": "amd64", "sha256": "00", "size": 5}`
	for file, text := range map[string]string{path: "other content", path + ".manifest.json": record} {
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, _ := withCache(t.Context(), dir, "e2e", "list")
	if code != verdict.ExitInconclusive || !strings.Contains(stdout, "expected 5 bytes, found 13 bytes") {
		t.Errorf("exit code %d, stdout:\n%s", code, stdout)
	}
}

func TestInterruptedFetch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, stdout, stderr := withCache(ctx, t.TempDir(), "e2e", "fetch", "ginkgo")
	if code != verdict.ExitInterrupted || stdout != "" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestDownWithoutACluster(t *testing.T) {
	code, stdout, stderr := withCache(t.Context(), t.TempDir(), "cluster", "down")
	if code != verdict.ExitReady || stdout != "" || !strings.Contains(stderr, "there is none") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// With the real binaries of the user's cache: standard output is a path that
// works, and nothing else.
func TestClusterUpPrintsItsKubeconfig(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a cluster")
	}
	dir, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	missing, err := (&binaries.Store{Dir: dir}).Missing(t.Context(), binaries.Pinned, kwok.Needs()...)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) > 0 && os.Getenv("OP_READINESS_TEST_BUILD") == "" {
		t.Skipf("not in the cache: %v: run op-readiness e2e fetch with these names, or set OP_READINESS_TEST_BUILD=1", missing)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // as clusters spell it
	}
	name := fmt.Sprintf("test-cli-%d", os.Getpid())
	t.Cleanup(func() {
		if code, _, stderr := withCache(context.Background(), dir, "cluster", "down", name); code != 0 {
			t.Errorf("down: %s", stderr)
		}
	})
	code, stdout, stderr := withCache(t.Context(), dir, "cluster", "up", "kwok", "--name", name, "--linux-nodes", "1", "--windows-nodes", "1")
	if code != verdict.ExitReady {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if want := filepath.Join(dir, "clusters", name, "kubeconfig") + "\n"; stdout != want {
		t.Errorf("stdout %q, want %q", stdout, want)
	}
	_, stdout, _ = withCache(t.Context(), dir, "cluster", "list")
	for _, want := range []string{name, "1 Linux, 1 Windows (ltsc2022)", "running"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}
}
