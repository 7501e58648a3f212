//go:build linux

package act_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// tool plays op-readiness: it tells its arguments, what it finds in the
// environment, and how the kubeconfig lies there, and does what $TOOL says.
const tool = `#!/usr/bin/env bash
for a in "$@"; do
  echo "argument <$a>" >&2
  case $a in --kubeconfig=*/kubeconfig) f=${a#*=}; echo "kubeconfig $(stat -c %a "$f") of $(stat -c %a "$(dirname "$f")")"; cp "$f" "$RUNNER_TEMP/seen";; esac
done
env | grep -E '^(OPR_|GITHUB_TOKEN)' | sed 's/^/environment /'
eval "${TOOL:-}"
`

// script is a run of one of the action's scripts.
type script struct {
	code   int
	out    string
	output map[string]string // what it wrote to $GITHUB_OUTPUT
	temp   string
}

// inputs are the defaults of action.yml's inputs.
func inputs() map[string]string {
	env := map[string]string{"OPR_COMMAND": "run", "OPR_SUMMARY": "true"}
	for _, name := range []string{"KUBECONFIG", "CATEGORIES", "SHARD", "SHARDS", "KUBERNETES_VERSION", "PROVIDER", "CLUSTER", "RETRIES", "RESULTS", "REPORT_DIR", "TOKEN", "ARGS"} {
		env["OPR_"+name] = ""
	}
	return env
}

func prepare(t *testing.T, name string, env map[string]string) (*exec.Cmd, func(error) script) {
	t.Helper()
	temp := t.TempDir()
	binary := filepath.Join(temp, "op-readiness")
	if err := os.WriteFile(binary, []byte(tool), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", append([]string{filepath.Join(root, "scripts", "action", name)}, strings.Fields(env["ARGUMENTS"])...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + temp, "RUNNER_TEMP=" + temp, "RUNNER_OS=Linux", "RUNNER_ARCH=X64", "OPR_BINARY=" + binary, "GITHUB_OUTPUT=" + filepath.Join(temp, "output"), "GITHUB_PATH=" + filepath.Join(temp, "path")}
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, func(err error) script {
		s := script{code: cmd.ProcessState.ExitCode(), out: out.String(), output: map[string]string{}, temp: temp}
		data, _ := os.ReadFile(filepath.Join(temp, "output"))
		for line := range strings.Lines(string(data)) {
			k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			s.output[k] = v
		}
		return s
	}
}

func execute(t *testing.T, name string, env map[string]string) script {
	t.Helper()
	cmd, done := prepare(t, name, env)
	return done(cmd.Run())
}

// with is the default inputs with some changed.
func with(changes ...string) map[string]string {
	env := inputs()
	for i := 0; i < len(changes); i += 2 {
		env[changes[i]] = changes[i+1]
	}
	return env
}

func TestInputsBecomeArgumentsAsTheyAre(t *testing.T) {
	for what, c := range map[string]struct {
		env  map[string]string
		want []string
	}{
		"run": {
			with("OPR_CATEGORIES", "Core.Network, Core.Storage\n", "OPR_SHARD", "2/3", "OPR_KUBERNETES_VERSION", "v1.36.3", "OPR_PROVIDER", "azure",
				"OPR_RETRIES", "1", "OPR_CLUSTER", "kwok", "OPR_REPORT_DIR", "/r", "OPR_ARGS", "--case=a\r\n\n  --e2e-arg=--x=$(id) `id` \"*\" \n--without=gmsa"),
			[]string{"run", "--category=Core.Network", "--category=Core.Storage", "--shard=2", "--shards=3", "--kubernetes-version=v1.36.3", "--provider=azure",
				"--retries=1", "--report-dir=/r", "--cluster=kwok", "--case=a", "--e2e-arg=--x=$(id) `id` \"*\"", "--without=gmsa"},
		},
		"merge":     {with("OPR_COMMAND", "merge", "OPR_RESULTS", "a\n-b c", "OPR_REPORT_DIR", "/r"), []string{"merge", "--report-dir=/r", "--", "a", "-b c"}},
		"preflight": {with("OPR_COMMAND", "preflight", "OPR_KUBECONFIG", "/some/path"), []string{"preflight", "--kubeconfig=/some/path"}},
		"cluster":   {with("OPR_COMMAND", "cluster", "OPR_CLUSTER", "kwok", "OPR_ARGS", "--name=x"), []string{"cluster", "up", "kwok", "--name=x"}},
		"publish":   {with("OPR_COMMAND", "publish", "OPR_RESULTS", "r", "OPR_ARGS", "--bucket=gs://b"), []string{"publish", "--bucket=gs://b", "--", "r"}},
	} {
		s := execute(t, "run.sh", c.env)
		var got []string
		for line := range strings.Lines(s.out) {
			if a, ok := strings.CutPrefix(line, "argument <"); ok {
				got = append(got, strings.TrimSuffix(a, ">\n"))
			}
		}
		if s.code != 0 || !slices.Equal(got, c.want) {
			t.Errorf("%s: exit code %d, %q, want %q\n%s", what, s.code, got, c.want, s.out)
		}
		if strings.Contains(s.out, "environment ") {
			t.Errorf("%s: inputs are left in the environment:\n%s", what, s.out)
		}
	}
}

func TestWrongInputsAreRefused(t *testing.T) {
	for says, env := range map[string]map[string]string{
		`command: "sideways" is not known: choose of run, plan`:          with("OPR_COMMAND", "sideways"),
		`shard: "2 of 3" does not say which of how many: write it as`:    with("OPR_SHARD", "2 of 3"),
		`retries: "many" is not a whole number`:                          with("OPR_RETRIES", "many"),
		`kubeconfig: the command "plan" does not take it, only run pref`: with("OPR_COMMAND", "plan", "OPR_KUBECONFIG", "/k"),
		`results: name the results folders, one a line`:                  with("OPR_COMMAND", "merge"),
		`cluster: which one is to be made? Say kwok`:                     with("OPR_COMMAND", "cluster"),
		`summary: "maybe" is not true or false`:                          with("OPR_SUMMARY", "maybe"),
		`report-dir: it must not hold a line break`:                      with("OPR_REPORT_DIR", "a\nverdict=ready"),
		`shards: "1%0A::error::forged" is not a whole number`:            with("OPR_COMMAND", "plan", "OPR_SHARDS", "1\n::error::forged"),
	} {
		s := execute(t, "run.sh", env)
		if s.code != 2 || !strings.Contains(s.out, "::error title=op-readiness::"+says) || strings.Contains(s.out, "argument <") || s.output["verdict"] != "" {
			t.Errorf("exit code %d, want 2 and %q:\n%s", s.code, says, s.out)
		}
	}
}

const secretConfig = `apiVersion: v1
kind: Config
clusters:
- name: there
  cluster: {server: "https://a-very-long-host-name.of-some-cluster.example.com:6443"}
users:
- name: me
  user:
    token: "short-one"
    client-key-data: TFMwdExTMUNSVWRKVGlCU1UwRWdVRkpKVmtGVVJTQkxSVmt0TFMwdExRbz0
    exec: {command: get-token, args: [--client-secret=argument-secret]}
`

func TestAKubeconfigIsKeptFromOthersAndRemoved(t *testing.T) {
	for end, code := range map[string]int{"": 0, "exit 3": 3, "kill -9 $$": 137} {
		env := with("OPR_KUBECONFIG", secretConfig)
		env["TOOL"] = end
		s := execute(t, "run.sh", env)
		if s.code != code || !strings.Contains(s.out, "kubeconfig 600 of 700") {
			t.Errorf("%q: exit code %d, want %d\n%s", end, s.code, code, s.out)
		}
		if seen, _ := os.ReadFile(filepath.Join(s.temp, "seen")); strings.TrimSpace(string(seen)) != strings.TrimSpace(secretConfig) {
			t.Errorf("%q: op-readiness was given another kubeconfig:\n%s", end, seen)
		}
		if _, err := os.Stat(s.output["secrets"]); s.output["secrets"] == "" || err == nil {
			t.Errorf("%q: the folder of secrets %q is left", end, s.output["secrets"])
		}
	}
}

func TestWhatIsSecretInAKubeconfigIsMasked(t *testing.T) {
	json := `{"users": [{"name": "me", "user": {"token": "json-token", "password": "50%"}}], "clusters": [{"cluster": {"server": "https://a-very-long-host-name.of-some-cluster.example.com"}}]}`
	for config, want := range map[string][]string{
		secretConfig: {"short-one", "TFMwdExTMUNSVWRKVGlCU1UwRWdVRkpKVmtGVVJTQkxSVmt0TFMwdExRbz0", "argument-secret"},
		json:         {"json-token"},
	} {
		cmd := exec.Command("bash", filepath.Join(root, "scripts", "action", "mask.sh"))
		cmd.Stdin = strings.NewReader(config)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, secret := range want {
			if !strings.Contains(string(out), "::add-mask::"+secret) {
				t.Errorf("%q is not masked:\n%s", secret, out)
			}
		}
		for line := range strings.Lines(string(out)) {
			if !strings.HasPrefix(line, "::add-mask::") || strings.Contains(line, "example.com") {
				t.Errorf("line %q", line)
			}
		}
	}
}

func TestACancelledJobStopsGracefullyThenAtOnce(t *testing.T) {
	env := with("OPR_KUBECONFIG", secretConfig)
	env["TOOL"] = `n=0; trap 'n=$((n+1)); echo "stop $n"; touch "$RUNNER_TEMP/stopped"; [[ $n -lt 2 ]] || exit 130' TERM; echo up >"$RUNNER_TEMP/up"; while :; do sleep 0.02; done`
	cmd, done := prepare(t, "run.sh", env)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	temp := filepath.Dir(strings.TrimPrefix(cmd.Env[slices.IndexFunc(cmd.Env, func(e string) bool { return strings.HasPrefix(e, "GITHUB_OUTPUT=") })], "GITHUB_OUTPUT="))
	eventually(t, "op-readiness runs", func() bool { _, err := os.Stat(filepath.Join(temp, "up")); return err == nil })
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if signal == os.Interrupt {
			eventually(t, "the first signal has come", func() bool { _, err := os.Stat(filepath.Join(temp, "stopped")); return err == nil })
		}
	}
	s := done(cmd.Wait())
	if s.code != 130 {
		t.Errorf("exit code %d, want 130:\n%s", s.code, s.out)
	}
	if _, err := os.Stat(s.output["secrets"]); err == nil {
		t.Errorf("the folder of secrets %q is left", s.output["secrets"])
	}
}

func TestLinesOfOthersAreNoCommandsToTheRunner(t *testing.T) {
	env := with("OPR_COMMAND", "comment", "OPR_RESULTS", "r", "OPR_TOKEN", "t0ken")
	env["TOOL"] = `echo "::error::not first"; echo "  ::add-mask::a"; exit 3`
	s := execute(t, "run.sh", env)
	stop := strings.Index(s.out, "::stop-commands::")
	if s.code != 3 || stop < 0 || stop > strings.Index(s.out, "::error::not first") {
		t.Fatalf("exit code %d:\n%s", s.code, s.out)
	}
	word, _, _ := strings.Cut(s.out[stop+len("::stop-commands::"):], "\n")
	if !strings.HasSuffix(s.out, "::add-mask::a\n::"+word+"::\n") {
		t.Errorf("commands are not taken again at the end:\n%s", s.out)
	}
	if !strings.Contains(s.out, "environment GITHUB_TOKEN=t0ken") {
		t.Errorf("the token is not handed on:\n%s", s.out)
	}
}

// releases plays a GitHub server with one release.
func releases(t *testing.T, files map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := files[strings.TrimPrefix(r.URL.Path, "/o/r/releases/download/v1.2.3/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(content))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestAReleaseIsDownloadedAndHeldAgainstItsChecksum(t *testing.T) {
	const asset, content = "op-readiness_v1.2.3_linux_amd64", "#!/bin/sh\necho op-readiness v1.2.3\n"
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	for what, c := range map[string]struct {
		checksums string
		says      string
		code      int
	}{
		"right":   {sum + "  " + asset + "\n" + strings.Repeat("0", 64) + "  other\n", "op-readiness v1.2.3", 0},
		"wrong":   {strings.Repeat("0", 64) + "  " + asset + "\n", "it is not used", 2},
		"missing": {sum + "  another\n", "it is not used", 2},
	} {
		temp := t.TempDir()
		env := map[string]string{
			"ARGUMENTS": "install", "GITHUB_SERVER_URL": releases(t, map[string]string{asset: content, "checksums.txt": c.checksums}), "OPR_REPOSITORY": "o/r",
			"OPR_VERSION": "v1.2.3", "OPR_FOLDER": filepath.Join(temp, "tool"), "OPR_BINARY": filepath.Join(temp, "tool", "op-readiness"),
		}
		s := execute(t, "get.sh", env)
		_, err := os.Stat(env["OPR_BINARY"])
		if s.code != c.code || !strings.Contains(s.out, c.says) || (err == nil) != (c.code == 0) {
			t.Errorf("%s: exit code %d, binary %v:\n%s", what, s.code, err, s.out)
		}
	}
}

func TestWhereTheBinaryComesFrom(t *testing.T) {
	self := t.TempDir()
	if err := os.CopyFS(self, os.DirFS(filepath.Join(root, "scripts", "action"))); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{"v1.2.3": "v1.2.3", "v2.0.0-rc.1": "v2.0.0-rc.1", "v1": "", "main": "", "": "", "v1-of-mine": "", strings.Repeat("0123", 10): ""} {
		s := execute(t, "get.sh", map[string]string{"ARGUMENTS": "locate", "OPR_REF": ref, "RUNNER_TOOL_CACHE": self, "GOCACHE": self, "GOTOOLCHAIN": "local"})
		if s.code != 0 || s.output["version"] != want || (s.output["cache-key"] == "") != (want != "") || !strings.HasPrefix(s.output["binary"], self) {
			t.Errorf("ref %q: exit code %d, %q\n%s", ref, s.code, s.output, s.out)
		}
	}
	// At a release, the workflows name its version.
	release := filepath.Join(t.TempDir(), "repository")
	copyOfARelease(t, release, "v1.4.0")
	for ref, want := range map[string]string{"v1": "v1.4.0", "v1.4": "v1.4.0", "v2": ""} {
		s := executeIn(t, release, "get.sh", map[string]string{"ARGUMENTS": "locate", "OPR_REF": ref, "RUNNER_TOOL_CACHE": self})
		if s.code != 0 || s.output["version"] != want {
			t.Errorf("ref %q: exit code %d, version %q, want %q\n%s", ref, s.code, s.output["version"], want, s.out)
		}
	}
}

// Another composite action that uses this one lends it its reference and its
// repository, whose releases are none of ours.
func TestAnActionInAnotherActionIsStillItself(t *testing.T) {
	const asset, content = "op-readiness_v1.2.3_linux_amd64", "#!/bin/sh\necho op-readiness v1.2.3\n"
	server := releases(t, map[string]string{asset: content, "checksums.txt": fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(content)), asset)})
	for ref, want := range map[string]string{"v1.2.3": "v1.2.3", "v1": "v1.2.3", "main": "", "feature/v9.9.9": ""} {
		at, tools := filepath.Join(t.TempDir(), "_actions", "o", "r", ref), t.TempDir()
		copyOfARelease(t, at, "v1.2.3")
		env := map[string]string{"ARGUMENTS": "locate", "OPR_REF": "v7.0.0", "OPR_REPOSITORY": "mallory/wrapper", "RUNNER_TOOL_CACHE": tools, "GITHUB_SERVER_URL": server}
		s := executeIn(t, at, "get.sh", env)
		if s.code != 0 || s.output["version"] != want {
			t.Errorf("%s: exit code %d, version %q, want %q\n%s", ref, s.code, s.output["version"], want, s.out)
			continue
		}
		if want == "" {
			continue
		}
		env["ARGUMENTS"], env["OPR_VERSION"], env["OPR_FOLDER"], env["OPR_BINARY"] = "install", s.output["version"], s.output["folder"], s.output["binary"]
		if s := executeIn(t, at, "get.sh", env); s.code != 0 || !strings.Contains(s.out, "Downloading "+server+"/o/r/releases/") {
			t.Errorf("%s: exit code %d\n%s", ref, s.code, s.out)
		}
	}
}

// copyOfARelease makes at what of a release's commit get.sh needs.
func copyOfARelease(t *testing.T, at, version string) {
	t.Helper()
	for _, name := range []string{"scripts/action/get.sh", "scripts/action/lib.sh", ".github/workflows/readiness.yml"} {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		data = bytes.ReplaceAll(data, []byte("windows-op-readiness/windows-op-readiness@main"), []byte("windows-op-readiness/windows-op-readiness@"+version))
		if err := os.MkdirAll(filepath.Dir(filepath.Join(at, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// executeIn runs a script of the copy of this repository in a folder.
func executeIn(t *testing.T, folder, name string, env map[string]string) script {
	t.Helper()
	cmd, done := prepare(t, name, env)
	cmd.Args[1] = filepath.Join(folder, "scripts", "action", name)
	return done(cmd.Run())
}
