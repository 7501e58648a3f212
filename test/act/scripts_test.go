//go:build linux

package act_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"errors"
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

	"github.com/windows-op-readiness/windows-op-readiness/test/actionstest"
)

// tool plays op-readiness: it tells its arguments, what it finds in the
// environment, and how the kubeconfig lies there, and does what $TOOL says.
const tool = `#!/usr/bin/env bash
if [[ $1 == mask ]]; then
  if grep -q unreadable; then echo "op-readiness: kubeconfig: ::error::what" >&2; exit 2; fi
  echo "::add-mask::short-one"; exit 0
fi
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
		`command: "sideways" is not known: use run, plan`:                with("OPR_COMMAND", "sideways"),
		`shard: "2 of 3" does not say which of how many: write it as`:    with("OPR_SHARD", "2 of 3"),
		`retries: "many" is not a whole number`:                          with("OPR_RETRIES", "many"),
		`kubeconfig: the command "plan" does not take it, only run pref`: with("OPR_COMMAND", "plan", "OPR_KUBECONFIG", "/k"),
		`results: name the results folders, one per line`:                with("OPR_COMMAND", "merge"),
		`cluster: which provider is to make it? Say kwok or kind`:        with("OPR_COMMAND", "cluster"),
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
	s := execute(t, "run.sh", with("OPR_KUBECONFIG", secretConfig))
	obeyed := actionstest.Obeyed(s.out)
	if s.code != 0 || len(obeyed) < 3 || obeyed[2] != (actionstest.Command{Name: "add-mask", Data: "short-one"}) {
		t.Errorf("exit code %d, the runner obeys %q:\n%s", s.code, obeyed, s.out)
	}
	s = execute(t, "run.sh", with("OPR_KUBECONFIG", secretConfig+"# unreadable\n"))
	if s.code != 2 || strings.Contains(s.out, "argument <") || len(actionstest.Obeyed(s.out)) != 2 {
		t.Errorf("one that cannot be read: exit code %d:\n%s", s.code, s.out)
	}
	if _, err := os.Stat(s.output["secrets"]); err == nil {
		t.Errorf("the folder of secrets %q is left", s.output["secrets"])
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

// hostile says on both streams what the runner would obey.
const hostile = `echo '::set-output name=verdict::ready'; echo 'a ##[set-output name=verdict]ready' >&2; echo '  ::add-mask::e' >&2; echo '##[error]forged'; printf 'x\\r::stop-commands::y'; `

func TestLinesOfOthersAreNoCommandsToTheRunner(t *testing.T) {
	for command, env := range map[string]map[string]string{
		"run":       with("OPR_KUBECONFIG", "/k"),
		"plan":      with(),
		"preflight": with(),
		"merge":     with("OPR_RESULTS", "r"),
		"publish":   with("OPR_RESULTS", "r"),
		"comment":   with("OPR_RESULTS", "r", "OPR_TOKEN", "t0ken"),
		"cluster":   with("OPR_CLUSTER", "kwok"),
	} {
		for _, end := range []string{"exit 0", "exit 2", "echo >&2"} {
			env["OPR_COMMAND"], env["TOOL"] = command, hostile+end
			s := execute(t, "run.sh", env)
			names := map[string]int{}
			stop := ""
			for i, c := range actionstest.Obeyed(s.out) {
				switch {
				case i%2 == 0 && c.Name == "stop-commands" && len(c.Data) == 32:
					stop = c.Data
				case i%2 == 1 && c.Name == stop:
				default:
					// Of its own, the script says what is wrong with an output.
					names[c.Name]++
				}
			}
			delete(names, "error")
			if len(names) > 0 || !strings.Contains(s.out, "::set-output name=verdict::ready") || !strings.Contains(s.out, "a ##[set-output") {
				t.Errorf("%s, %q: exit code %d, the runner obeys %v:\n%s", command, end, s.code, names, s.out)
			}
			if verdict, there := s.output["verdict"]; !there || verdict != "" {
				t.Errorf("%s, %q: the outputs are %q", command, end, s.output)
			}
			if command == "comment" && !strings.Contains(s.out, "environment GITHUB_TOKEN=t0ken") {
				t.Errorf("the token is not handed on:\n%s", s.out)
			}
		}
	}
}

func TestAnnotationsComeWhereCommandsAreObeyed(t *testing.T) {
	env := with("OPR_COMMAND", "preflight")
	env["TOOL"] = `printf '::error title=a::b\n::set-output name=verdict::ready\n::warning title=c::d\n' >"$OP_READINESS_ANNOTATIONS"; ` + hostile
	var got []string
	for _, c := range actionstest.Obeyed(execute(t, "run.sh", env).out) {
		got = append(got, c.Name+" "+c.Data)
	}
	if len(got) != 4 || !slices.Equal(got[2:], []string{"error b", "warning d"}) {
		t.Errorf("the runner obeys %q", got)
	}
}

// gitHub plays a GitHub server over TLS with one release, which a runner trusts:
// the environment of such a runner. What is asked for as /moved is answered by
// insecure.
func gitHub(t *testing.T, insecure string, files map[string]string) map[string]string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/o/moved/") {
			http.Redirect(w, r, insecure+strings.Replace(r.URL.Path, "moved", "r", 1), http.StatusFound)
			return
		}
		release(files).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"GITHUB_SERVER_URL": server.URL, "CURL_CA_BUNDLE": authority, "OPR_REPOSITORY": "o/r", "https_proxy": ""}
}

func release(files map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := files[strings.TrimPrefix(r.URL.Path, "/o/r/releases/download/v1.2.3/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(content))
	})
}

const (
	asset    = "op-readiness_v1.2.3_linux_amd64"
	released = "#!/bin/sh\necho op-readiness v1.2.3\n"
)

var releasedSum = fmt.Sprintf("%x", sha256.Sum256([]byte(released)))

// A binary that somebody else could have put there is never run: not that of a
// server, not that of another job.
func TestOnlyTheBinaryThatTheSourcePinsIsRun(t *testing.T) {
	const planted = "#!/bin/sh\necho planted\n"
	plain := httptest.NewServer(release(map[string]string{asset: released}))
	t.Cleanup(plain.Close)
	for what, c := range map[string]struct {
		pins    string // checksums.txt of the action's source
		served  string
		planted string // what lies in the temporary folder
		env     []string
		says    string
		code    int
	}{
		"as pinned":                {pins: releasedSum + "  " + asset + "\n", served: released, says: "op-readiness v1.2.3", code: 0},
		"another than is pinned":   {pins: releasedSum + "  " + asset + "\n", served: planted, says: "it is not used", code: 2},
		"of an earlier step":       {pins: releasedSum + "  " + asset + "\n", planted: released, says: "op-readiness v1.2.3", code: 0},
		"planted where it will be": {pins: releasedSum + "  " + asset + "\n", served: released, planted: planted, says: "op-readiness v1.2.3", code: 0},
		"not pinned":               {pins: releasedSum + "  another\n", served: released, says: "no Go on this runner", code: 2},
		"no pins at all":           {served: released, says: "no Go on this runner", code: 2},
		"a server without TLS":     {pins: releasedSum + "  " + asset + "\n", env: []string{"GITHUB_SERVER_URL", plain.URL}, says: "no Go on this runner", code: 2},
		"sent on without TLS":      {pins: releasedSum + "  " + asset + "\n", env: []string{"OPR_REPOSITORY", "o/moved"}, says: "no Go on this runner", code: 2},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			at, folder := filepath.Join(t.TempDir(), "action"), filepath.Join(t.TempDir(), "op-readiness")
			copyOfARelease(t, at, "v1.2.3")
			files := map[string]string{}
			if c.served != "" {
				files[asset] = c.served
			}
			env := gitHub(t, plain.URL, files)
			env["ARGUMENTS"], env["OPR_VERSION"], env["OPR_FOLDER"], env["OPR_BINARY"] = "install", "v1.2.3", folder, filepath.Join(folder, "op-readiness")
			env["PATH"] = withoutGo(t)
			for i := 0; i < len(c.env); i += 2 {
				env[c.env[i]] = c.env[i+1]
			}
			write := func(path, content string) {
				if content == "" {
					return
				}
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o755)); err != nil {
					t.Fatal(err)
				}
			}
			write(filepath.Join(at, "scripts", "action", "checksums.txt"), c.pins)
			write(env["OPR_BINARY"], c.planted)
			s := executeIn(t, at, "get.sh", env)
			if s.code != c.code || !strings.Contains(s.out, c.says) || strings.Contains(s.out, "planted\n") {
				t.Errorf("exit code %d, want %d and %q:\n%s", s.code, c.code, c.says, s.out)
			}
		})
	}
}

// withoutGo is a PATH with what the scripts need, and no Go to build with; nor a
// way to github.com.
func withoutGo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"bash", "curl", "sha256sum", "mkdir", "mktemp", "chmod", "mv", "rm", "dirname", "sh", "env"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWhereTheBinaryComesFrom(t *testing.T) {
	self := t.TempDir()
	if err := os.CopyFS(self, os.DirFS(filepath.Join(root, "scripts", "action"))); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{"v1.2.3": "v1.2.3", "v2.0.0-rc.1": "v2.0.0-rc.1", "v1": "", "main": "", "": "", "v1-of-mine": "", strings.Repeat("0123", 10): ""} {
		s := execute(t, "get.sh", map[string]string{"ARGUMENTS": "locate", "OPR_REF": ref, "RUNNER_TOOL_CACHE": self, "GOCACHE": self, "GOTOOLCHAIN": "local"})
		// What is in the tool cache may be anybody's.
		if s.code != 0 || s.output["version"] != want || (s.output["cache-key"] == "") != (want != "") || !strings.HasPrefix(s.output["binary"], s.temp) {
			t.Errorf("ref %q: exit code %d, %q\n%s", ref, s.code, s.output, s.out)
		}
	}
	// At a release, the workflows name its version.
	release := filepath.Join(t.TempDir(), "repository")
	copyOfARelease(t, release, "v1.4.0")
	for ref, want := range map[string]string{"v1": "v1.4.0", "v1.4": "v1.4.0", "v2": ""} {
		s := executeIn(t, release, "get.sh", map[string]string{"ARGUMENTS": "locate", "OPR_REF": ref})
		if s.code != 0 || s.output["version"] != want {
			t.Errorf("ref %q: exit code %d, version %q, want %q\n%s", ref, s.code, s.output["version"], want, s.out)
		}
	}
}

// Another composite action that uses this one lends it its reference and its
// repository, whose releases are none of ours.
func TestAnActionInAnotherActionIsStillItself(t *testing.T) {
	for ref, want := range map[string]string{"v1.2.3": "v1.2.3", "v1": "v1.2.3", "main": "", "feature/v9.9.9": ""} {
		at := filepath.Join(t.TempDir(), "_actions", "o", "r", ref)
		copyOfARelease(t, at, "v1.2.3")
		if err := os.WriteFile(filepath.Join(at, "scripts", "action", "checksums.txt"), []byte(releasedSum+"  "+asset+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		env := gitHub(t, "", map[string]string{asset: released})
		env["ARGUMENTS"], env["OPR_REF"], env["OPR_REPOSITORY"] = "locate", "v7.0.0", "mallory/wrapper"
		s := executeIn(t, at, "get.sh", env)
		if s.code != 0 || s.output["version"] != want {
			t.Errorf("%s: exit code %d, version %q, want %q\n%s", ref, s.code, s.output["version"], want, s.out)
			continue
		}
		if want == "" {
			continue
		}
		env["ARGUMENTS"], env["OPR_VERSION"], env["OPR_FOLDER"], env["OPR_BINARY"] = "install", s.output["version"], s.output["folder"], s.output["binary"]
		if s := executeIn(t, at, "get.sh", env); s.code != 0 || !strings.Contains(s.out, "Downloading "+env["GITHUB_SERVER_URL"]+"/o/r/releases/") {
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

// What run.sh says of its run is what the last step of the action removes.
func TestTheClusterOfAKilledRunIsRemoved(t *testing.T) {
	s := execute(t, "run.sh", with("OPR_CLUSTER", "kwok"))
	tag := s.output["cluster-run"]
	if !strings.HasPrefix(tag, "github-") {
		t.Fatalf("cluster-run is %q\n%s", tag, s.out)
	}
	if again := execute(t, "run.sh", with("OPR_CLUSTER", "kwok")); again.output["cluster-run"] == tag {
		t.Error("two runs of one job have one tag")
	}
	last := execute(t, "cleanup.sh", map[string]string{"OPR_CLUSTER_RUN": tag})
	for _, want := range []string{"cluster", "down", "--run", tag} {
		if !strings.Contains(last.out, "argument <"+want+">") {
			t.Errorf("%q is not in\n%s", want, last.out)
		}
	}
	if without := execute(t, "cleanup.sh", nil); without.code != 0 || strings.Contains(without.out, "argument") {
		t.Errorf("without a run, exit code %d\n%s", without.code, without.out)
	}
}
