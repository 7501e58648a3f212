// Package runner runs GitHub workflows on this machine, with act
// (https://github.com/nektos/act) and without containers, for tests: those of a
// second repository that uses this one's action and workflows.
//
// The artifact and cache actions are played by a few lines of JavaScript that keep
// artifacts in a folder, with GitHub's rules for their names; see actions/.
package runner

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Action is what this repository is called where its action is used.
const Action = "windows-op-readiness/windows-op-readiness"

//go:embed actions
var standIns embed.FS

// ErrMissing is returned where this machine lacks what is needed; the error says
// what.
var ErrMissing = errors.New("workflows cannot be run here")

// Runner has act, and a copy of this repository as GitHub would deliver it.
type Runner struct {
	// Repository is the copy.
	Repository string

	act   string
	cache string // of the actions' sources
	kept  string // what the cache action keeps
	bin   string // goes first in PATH
	flags []string
}

// New prepares to run workflows. root is this repository; dir takes everything
// that is made, and is the caller's to remove.
func New(ctx context.Context, root, dir string) (*Runner, error) {
	for _, program := range []string{"node", "git", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%w: there is no %s in PATH", ErrMissing, program)
		}
	}
	r := &Runner{Repository: filepath.Join(dir, "repository"), act: filepath.Join(dir, "act"), cache: filepath.Join(dir, "cache"), kept: filepath.Join(dir, "kept")}
	if err := os.MkdirAll(r.kept, 0o755); err != nil {
		return nil, err
	}
	module := filepath.Join(root, "scripts", "act")
	if err := command(ctx, module, "go", "mod", "download"); err != nil {
		return nil, fmt.Errorf("%w: getting act: %w", ErrMissing, err)
	}
	if err := command(ctx, module, "go", "build", "-o", r.act, "github.com/nektos/act"); err != nil {
		return nil, err
	}
	if err := copyTracked(ctx, root, r.Repository); err != nil {
		return nil, fmt.Errorf("copying the repository: %w", err)
	}
	if err := os.CopyFS(dir, standIns); err != nil {
		return nil, err
	}
	if err := r.addShell(dir); err != nil {
		return nil, err
	}
	refs, err := r.references()
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		action, _, _ := strings.Cut(ref, "@")
		folder := r.Repository
		if action != Action {
			folder = filepath.Join(dir, "actions", filepath.Base(action))
			if _, err := os.Stat(folder); err != nil {
				continue // it has no stand-in: a workflow that comes to it fails
			}
		}
		r.flags = append(r.flags, "--local-repository", ref+"="+folder)
	}
	return r, nil
}

// shell is the bash of jobs: act loses what a step says right before it fails, so
// all of it goes to a file, too.
const shell = `#!/bin/sh
[ -z "$STANDIN_SHELL" ] || exec %[1]s "$@"
export STANDIN_SHELL=1
exec %[1]s -c '%[1]s "$@" 2>&1 | tee -a "$STANDIN_LOG"; exit "${PIPESTATUS[0]}"' bash "$@"
`

func (r *Runner) addShell(dir string) error {
	bash, err := exec.LookPath("bash")
	if err != nil {
		return err
	}
	r.bin = filepath.Join(dir, "bin")
	if err := os.MkdirAll(r.bin, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.bin, "bash"), fmt.Appendf(nil, shell, bash), 0o755)
}

var uses = regexp.MustCompile(`(?m)^\s+(?:- )?uses: ([\w.-]+/[\w.-]+)[^@\s]*@(\S+)`)

// references are the actions that the action and the workflows use, as name@ref,
// and this one's at v1, for callers.
func (r *Runner) references() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(r.Repository, ".github", "workflows", "*.yml"))
	if err != nil {
		return nil, err
	}
	refs := []string{Action + "@v1"}
	for _, file := range append(files, filepath.Join(r.Repository, "action.yml")) {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range uses.FindAllStringSubmatch(string(data), -1) {
			refs = append(refs, m[1]+"@"+m[2])
		}
	}
	slices.Sort(refs)
	return slices.Compact(refs), nil
}

// Workflow is a workflow run of a repository.
type Workflow struct {
	// Repository is the folder of a git repository with the workflow.
	Repository string
	// Event is its event (default push), with the payload Payload.
	Event   string
	Payload string
	// Run and Attempt identify the run.
	Run, Attempt int
	Secrets      map[string]string
	// Env is what jobs find in their environment.
	Env map[string]string
	// Matrix selects jobs of a matrix, as "key:value".
	Matrix []string
	// Artifacts is the folder that keeps the artifacts of runs.
	Artifacts string
}

// Log is what a workflow run left.
type Log struct {
	Failed bool
	// Jobs are the results of jobs by name, such as "success".
	Jobs map[string]string
	// Steps are the steps that ran, in the order in which they ended.
	Steps []Step
	// Lines are all lines, as "job: text".
	Lines []string
	// Said is what steps that are scripts said, as they said it.
	Said string
	// Summaries are the job summaries, in the order in which they were written.
	Summaries []string
}

// Step is a step that has ended.
type Step struct {
	Job, Name, Result string
	Took              time.Duration
}

// Text is what the runner shows, line by line.
func (l *Log) Text() string { return strings.Join(l.Lines, "\n") }

// Run runs a workflow. That it fails is not an error.
func (r *Runner) Run(ctx context.Context, w Workflow) (*Log, error) {
	for {
		log, output, err := r.run(ctx, w)
		// act 0.2.89 writes, for jobs that prepare at the same moment, to one map.
		if err == nil || !strings.Contains(output, "fatal error: concurrent map") {
			return log, err
		}
	}
}

func (r *Runner) run(ctx context.Context, w Workflow) (log *Log, output string, err error) {
	temp, err := os.MkdirTemp("", "workflow-")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(temp)
	event := w.Event
	if event == "" {
		event = "push"
	}
	args := append([]string{
		event, "--json", "--platform", "ubuntu-latest=-self-hosted", "--no-cache-server", "--action-cache-path", r.cache, "--concurrent-jobs", "2",
		"--env", "GITHUB_RUN_ID=" + strconv.Itoa(w.Run), "--env", "GITHUB_RUN_ATTEMPT=" + strconv.Itoa(max(w.Attempt, 1)),
		"--env", "STANDIN_ARTIFACTS=" + w.Artifacts, "--env", "STANDIN_CACHE=" + r.kept,
	}, r.flags...)
	if w.Payload != "" {
		path := filepath.Join(temp, "event.json")
		if err := os.WriteFile(path, []byte(w.Payload), 0o600); err != nil {
			return nil, "", err
		}
		args = append(args, "--eventpath", path)
	}
	for name, value := range w.Env {
		args = append(args, "--env", name+"="+value)
	}
	spoken := filepath.Join(temp, "spoken")
	args = append(args, "--env", "STANDIN_LOG="+spoken)
	env := append(environ(), "PATH="+r.bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for name, value := range w.Secrets {
		args = append(args, "--secret", name)
		env = append(env, name+"="+value)
	}
	for _, m := range w.Matrix {
		args = append(args, "--matrix", m)
	}
	cmd := exec.CommandContext(ctx, r.act, args...)
	cmd.Dir, cmd.Env = w.Repository, env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	output = out.String()
	log = parse(output)
	said, _ := os.ReadFile(spoken)
	log.Said = string(said)
	log.Failed = err != nil
	if len(log.Jobs) == 0 || ctx.Err() != nil || strings.Contains(output, "fatal error: ") {
		return nil, output, fmt.Errorf("act: %w\n%s", errors.Join(err, ctx.Err()), output[max(0, len(output)-10_000):])
	}
	return log, output, nil
}

// parse reads what act says with --json.
func parse(output string) *Log {
	log := &Log{Jobs: map[string]string{}}
	scanner := bufio.NewScanner(strings.NewReader(output))
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var line struct {
			Job           string        `json:"job"`
			JobResult     string        `json:"jobResult"`
			Msg           string        `json:"msg"`
			Stage         string        `json:"stage"`
			Step          string        `json:"step"`
			StepResult    string        `json:"stepResult"`
			Command       string        `json:"command"`
			Content       string        `json:"content"`
			ExecutionTime time.Duration `json:"executionTime"`
		}
		if json.Unmarshal(scanner.Bytes(), &line) != nil {
			log.Lines = append(log.Lines, scanner.Text())
			continue
		}
		job := strings.TrimSpace(line.Job)
		log.Lines = append(log.Lines, job+": "+strings.TrimSuffix(line.Msg, "\n"))
		if line.JobResult != "" {
			log.Jobs[job] = line.JobResult
		}
		if line.StepResult != "" && line.Stage == "Main" {
			log.Steps = append(log.Steps, Step{job, line.Step, line.StepResult, line.ExecutionTime})
		}
		if line.Command == "summary" {
			log.Summaries = append(log.Summaries, line.Content)
		}
	}
	return log
}

// environ is what of this process's environment jobs may see: nothing of the
// workflow or cluster that this process itself may run in.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		known := []string{"PATH", "HOME", "TMPDIR", "LANG", "XDG_CACHE_HOME", "OP_READINESS_CACHE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}
		return !slices.Contains(known, name) && !strings.HasPrefix(name, "GO")
	})
}

// NewRepository makes dir a git repository with files.
func NewRepository(ctx context.Context, dir string, files map[string]string) error {
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return commit(ctx, dir)
}

// commit makes what lies in dir the first commit of a repository.
func commit(ctx context.Context, dir string) error {
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch", "main"},
		{"remote", "add", "origin", "https://github.com/someone/clusters.git"},
		{"add", "--all"},
		{"-c", "user.name=Somebody", "-c", "user.email=somebody@example.com", "commit", "--quiet", "--message", "A workflow"},
	} {
		if err := command(ctx, dir, "git", args...); err != nil {
			return err
		}
	}
	return nil
}

// Checkout makes dir a repository like this one, with further files.
func (r *Runner) Checkout(ctx context.Context, dir string, files map[string]string) error {
	if err := os.CopyFS(dir, os.DirFS(r.Repository)); err != nil {
		return err
	}
	return NewRepository(ctx, dir, files)
}

// copyTracked copies what git knows, or would take up, of root; without guides and
// tests, which no use of the action needs.
func copyTracked(ctx context.Context, root, to string) error {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if strings.HasPrefix(name, "docs/") || strings.HasPrefix(name, "test/") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		from, path := filepath.Join(root, name), filepath.Join(to, name)
		info, err := os.Lstat(from)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, and not yet committed
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %.2000s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
