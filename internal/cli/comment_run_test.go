package cli

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/test/githubtest"
)

// fork is a pull request from a fork, whose workflow run has ended, and the
// workflow that this triggered.
type fork struct{ *commenting }

func newFork(t *testing.T) *fork {
	t.Helper()
	f := &fork{newCommenting(t)}
	f.SetPull(githubtest.Pull{Repo: "o/r", Number: 7, Head: commentHead, HeadRepo: "fork/r", HeadBranch: "topic"})
	f.ran(3, "success")
	return f
}

// ran says that an attempt at run 16 has ended, and that this is what triggered
// us.
func (f *fork) ran(attempt int, conclusion string) {
	f.t.Helper()
	f.SetRun(githubtest.Run{Repo: "o/r", ID: 16, Attempt: attempt, Head: commentHead, HeadRepo: "fork/r", HeadBranch: "topic", Conclusion: conclusion})
	f.inActions("workflow_run", strings.Replace(runEvent("fork/r"), `"run_attempt": 3`, fmt.Sprintf(`"run_attempt": %d`, attempt), 1))
}

// archive packs a results folder that says it is of a run, a repository, and a
// commit, as an artifact is packed.
func (f *fork) archive(change func(manifest map[string]any), more ...string) []byte {
	f.t.Helper()
	var files []string
	dir := f.results("packed", commentHead)
	for _, name := range []string{result.PlanFile, result.ManifestFile, result.EventsFile} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.t.Fatal(err)
		}
		if name == result.ManifestFile && change != nil {
			var manifest map[string]any
			if err := json.Unmarshal(data, &manifest); err != nil {
				f.t.Fatal(err)
			}
			change(manifest)
			if data, err = json.Marshal(manifest); err != nil {
				f.t.Fatal(err)
			}
		}
		files = append(files, name, string(data))
	}
	if err := os.RemoveAll(dir); err != nil {
		f.t.Fatal(err)
	}
	return zipped(f.t, append(files, more...)...)
}

// zipped packs files, each with its name before it.
func zipped(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := 0; i < len(files); i += 2 {
		file, err := w.Create(files[i])
		if err == nil {
			_, err = file.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// source changes what results say of where they come from.
func source(key string, value any) func(map[string]any) {
	return func(manifest map[string]any) { manifest["source"].(map[string]any)[key] = value }
}

func (f *fork) upload(of string, attempt int, data []byte) {
	f.AddArtifact(githubtest.Artifact{Repo: "o/r", Run: 16, Name: fmt.Sprintf("op-readiness-%s-merged-attempt-%d", of, attempt), Data: data})
}

// body is the one comment.
func (f *fork) body() string {
	f.t.Helper()
	all := f.Comments("o/r", 7)
	if len(all) != 1 {
		f.t.Fatalf("%d comments", len(all))
	}
	return all[0].Body
}

// says fails unless the one comment says all these.
func (f *fork) says(texts ...string) {
	f.t.Helper()
	body := f.body()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			f.t.Errorf("the comment does not say %q:\n%s", text, body)
		}
	}
}

// A pull request from a fork, from its own run to the comment: the fork's token
// can only read, which fails nothing; the workflow that its run triggers posts.
func TestAForkIsCommentedOnOnce(t *testing.T) {
	f := newFork(t)
	f.AddToken("ghs_ofthefork", githubtest.Token{Login: "github-actions[bot]", Installation: true})
	f.env["GITHUB_TOKEN"] = "ghs_ofthefork"
	f.inActions("pull_request", pullEvent("fork/r"))
	f.want(f.main(f.results("merged", commentHead), "--summary"), verdict.ExitReady, 0, "Nothing is posted: the token of a pull request from a fork is read-only")

	f.env["GITHUB_TOKEN"] = commentToken
	f.upload("ltsc2022", 3, f.archive(nil))
	f.ran(3, "failure")
	f.want(f.main(), verdict.ExitReady, 1, "o/r#7: comment created https")
	f.says(`head="`+commentHead+`" run="16" attempt="3"`, "readiness of ltsc2022, "+recordedScope+": inconclusive", "| Core.Concurrent |", "Reported by ", "which the pull request may have changed",
		"[workflow run](<https://github.com/o/r/actions/runs/16/attempts/3>)")
	f.want(f.main(), verdict.ExitReady, 1, "comment unchanged https")
	f.want(f.main("--comment-id", "nightly"), verdict.ExitReady, 2, "comment created https")
}

func TestTheOnlyResultsNeedNoName(t *testing.T) {
	f := newFork(t)
	f.upload("readiness", 3, f.archive(nil))
	f.want(f.main("--base", f.results("base", headOfBase)), verdict.ExitReady, 1, "comment created https")
	f.says("### ⚠️ Windows operational readiness of "+recordedScope+": inconclusive\n", "**Against the base:** no difference")
}

func TestSeveralNamesBecomeColumns(t *testing.T) {
	f := newFork(t)
	f.upload("ltsc2025", 1, f.archive(nil))
	f.upload("ltsc2022", 3, f.archive(nil))
	f.upload("ltsc2022", 2, []byte("an older attempt is not read"))
	f.upload("ltsc2022", 4, []byte("nor one that is still to come"))
	for _, other := range []string{"logs", "op-readiness-ltsc2022-shard-1-attempt-3", "op-readiness-x-merged-attempt-0", "op-readiness-x-merged-attempt-99999999999", "op-readiness-<b>@octocat-merged-attempt-1", "op-readiness-a b-merged-attempt-1", "op-readiness-" + strings.Repeat("x", 200) + "-merged-attempt-1"} {
		f.AddArtifact(githubtest.Artifact{Repo: "o/r", Run: 16, Name: other, Data: []byte("another")})
	}
	base := f.results("base", headOfBase)
	f.want(f.main("--base", "ltsc2022="+base), verdict.ExitReady, 1, "comment created")
	f.says("of 2 clusters", "| Category | ltsc2022 | ltsc2025 |", "ltsc2025: the results are of attempt 1 of the workflow run, and attempt 3 left none", "**Against the base:** no difference")
	if strings.Contains(f.body(), "octocat") {
		t.Errorf("an artifact of another name is read:\n%s", f.body())
	}
}

func TestARerunReplacesAndALateOneNeverDoes(t *testing.T) {
	f := newFork(t)
	f.upload("x", 1, f.archive(nil))
	f.ran(2, "success")
	f.upload("x", 2, f.archive(nil))
	f.want(f.main(), verdict.ExitReady, 1, "comment created")
	f.ran(1, "failure")
	f.want(f.main(), verdict.ExitReady, 1, "comment left alone: it shows newer results")
	f.says(`attempt="2"`)
	f.SetRun(githubtest.Run{Repo: "o/r", ID: 16, Attempt: 3, Status: "in_progress", Head: commentHead, HeadRepo: "fork/r", HeadBranch: "topic"})
	f.want(f.main(), verdict.ExitReady, 1, "left alone")
	f.want(f.main("--attempt", "3"), verdict.ExitInconclusive, 1, "run 16 of o/r has not completed: wait until it has")
}

func TestRunsThatRaceEndInOneComment(t *testing.T) {
	f := newFork(t)
	f.ran(1, "failure")
	f.ran(2, "success")
	f.upload("x", 1, f.archive(nil))
	f.upload("x", 2, f.archive(nil))
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			var out, errs bytes.Buffer
			args := []string{"comment", "--repo", "o/r", "--workflow-run", "16", "--attempt", fmt.Sprint(1 + i%2), "--settle", "0s"}
			code := Main(context.Background(), args, Surroundings{Environ: []string{"GITHUB_TOKEN=" + commentToken, "GITHUB_API_URL=" + f.env["GITHUB_API_URL"]}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
			if code != verdict.ExitReady {
				t.Errorf("exit code %d: %s", code, errs.String())
			}
		})
	}
	group.Wait()
	f.want(f.main("--attempt", "2"), verdict.ExitReady, 1)
	f.says(`attempt="2"`)
}

func TestAPullRequestThatIsNotThereAnyMore(t *testing.T) {
	for name, test := range map[string]struct {
		pull githubtest.Pull
		says string
	}{
		"closed":        {githubtest.Pull{Head: commentHead, HeadRepo: "fork/r", HeadBranch: "topic", Closed: true}, "Nothing is posted: o/r#7 is closed"},
		"force-pushed":  {githubtest.Pull{Head: headOfBase, HeadRepo: "fork/r", HeadBranch: "topic"}, "Nothing is posted: o/r#7 has another head by now than " + commentHead},
		"of another":    {githubtest.Pull{Head: commentHead, HeadRepo: "mallory/r", HeadBranch: "topic"}, "Nothing is posted: no open pull request of o/r has " + commentHead + " of fork/r as its head"},
		"of a twin":     {githubtest.Pull{Head: commentHead, HeadRepo: "fork/other", HeadBranch: "topic"}, "Nothing is posted: no open pull request"},
		"of a lost one": {githubtest.Pull{Head: commentHead, HeadRepo: "", HeadBranch: "topic"}, "Nothing is posted: no open pull request"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFork(t)
			f.upload("x", 3, f.archive(nil))
			test.pull.Repo, test.pull.Number = "o/r", 7
			f.SetPull(test.pull)
			// Nor is anything fetched to compare it with.
			got := f.main("--base", "file:///nowhere/at/all")
			f.want(got, verdict.ExitReady, 0, test.says)
			if strings.Contains(got.stderr, "base") {
				t.Errorf("the base was looked for:\n%s", got.stderr)
			}
		})
	}
}

func TestAForkThatIsGone(t *testing.T) {
	f := newFork(t)
	f.upload("x", 3, f.archive(nil))
	f.Fault = func(r *http.Request) *githubtest.Fault {
		if !strings.HasSuffix(r.URL.Path, "/attempts/3") {
			return nil
		}
		return &githubtest.Fault{Status: http.StatusOK, Body: `{"id": 16, "status": "completed", "conclusion": "success", "head_sha": "` + commentHead + `", "head_branch": "topic", "repository": {"full_name": "o/r"}, "head_repository": null}`}
	}
	f.want(f.main(), verdict.ExitReady, 0, "Nothing is posted: no open pull request of o/r has "+commentHead+" of a repository that is gone as its head")
}

// Whatever happens between the look at the pull request and the write, nothing is
// written on what has changed.
func TestAPullRequestThatChangesMeanwhile(t *testing.T) {
	for says, pull := range map[string]githubtest.Pull{
		"comment not written: the pull request is closed by now":        {Head: commentHead, HeadRepo: "fork/r", HeadBranch: "topic", Closed: true},
		"comment not written: the pull request has another head by now": {Head: headOfBase, HeadRepo: "fork/r", HeadBranch: "topic"},
	} {
		f := newFork(t)
		f.upload("x", 3, f.archive(nil))
		pull.Repo, pull.Number = "o/r", 7
		f.Fault = func(r *http.Request) *githubtest.Fault {
			if strings.Contains(r.URL.Path, "/comments") {
				f.SetPull(pull)
			}
			return nil
		}
		f.want(f.main(), verdict.ExitReady, 0, says)
	}
}

// Two pull requests may have the same head; results say which one they are of.
func TestPullRequestsWithTheSameHead(t *testing.T) {
	for pull, comments := range map[int]int{7: 1, 8: 0, 0: 1, 99: 1} {
		f := newFork(t)
		f.SetPull(githubtest.Pull{Repo: "o/r", Number: 8, Head: commentHead, HeadRepo: "fork/r", HeadBranch: "topic"})
		f.upload("x", 3, f.archive(source("pull", pull)))
		f.want(f.main(), verdict.ExitReady, comments)
		if got, want := len(f.Comments("o/r", 8)), map[int]int{7: 0, 8: 1, 0: 1, 99: 1}[pull]; got != want {
			t.Errorf("results of pull request %d: %d comments on the other one, want %d", pull, got, want)
		}
	}
	f := newFork(t)
	f.upload("x", 3, f.archive(nil))
	f.want(f.main("--pull", "8"), verdict.ExitReady, 0, "Nothing is posted: run 16 of o/r was for o/r#7, and not for --pull 8")
}

func TestARunThatLeftNoResults(t *testing.T) {
	for conclusion, comments := range map[string]int{"failure": 1, "timed_out": 1, "startup_failure": 1, "success": 0, "skipped": 0, "cancelled": 0, "action_required": 0} {
		f := newFork(t)
		f.ran(3, conclusion)
		f.upload("x", 4, f.archive(nil))
		f.want(f.main("--summary"), verdict.ExitReady, comments, "run 16 of o/r came to "+conclusion+", and left no artifact op-readiness-NAME-merged-attempt-N")
		if comments == 1 {
			f.says("readiness: no results", "The workflow run came to **"+strings.ReplaceAll(conclusion, "_", " ")+"** and left no results. Nothing is known of this commit.", "Reported by", "attempts/3")
		}
		if summary, err := os.ReadFile(f.env["GITHUB_STEP_SUMMARY"]); err != nil || !strings.Contains(string(summary), "no results") {
			t.Errorf("%s: %v: the summary is %q", conclusion, err, summary)
		}
	}
	// What an earlier commit came to does not stay as if it were of this one.
	f := newFork(t)
	f.AddComment("o/r", 7, "github-actions[bot]", `<!-- op-readiness id="readiness" head="`+headOfBase+`" run="15" attempt="1" -->`+"\nready!")
	f.ran(3, "cancelled")
	f.want(f.main(), verdict.ExitReady, 1, "comment updated")
	f.says("came to **cancelled** and left no results")
}

func TestResultsThatAreNotOfThisRun(t *testing.T) {
	for says, change := range map[string]func(map[string]any){
		`the results are for commit "` + headOfBase + `", and the workflow run was for ` + commentHead: source("commit", headOfBase),
		`the results are for commit "", and the workflow run was for`:                                  source("commit", ""),
		`the results are for repository "other/r", and this is about o/r`:                              source("repository", "other/r"),
		`the results are of run "15", and this is about run 16`:                                        source("build", "15"),
		`op-readiness-x-merged-attempt-3: the results are for repository ""`:                           source("repository", ""),
		`op-readiness-x-merged-attempt-3: the results are of run ""`:                                   source("build", ""),
		`the results are combined of 2 runs, and this is about run 16`: func(m map[string]any) {
			m["runs"] = []map[string]any{{"runID": "a"}, {"runID": "b"}}
		},
		`op-readiness-x-merged-attempt-3: shard 2: the results are for commit "` + headOfBase + `"`: func(m map[string]any) {
			shard := func(n int, commit string) map[string]any {
				s := maps.Clone(m["source"].(map[string]any))
				s["commit"] = commit
				return map[string]any{"schema": 1, "shard": n, "source": s}
			}
			m["shards"] = []map[string]any{shard(1, commentHead), shard(2, headOfBase)}
		},
	} {
		f := newFork(t)
		f.upload("good", 3, f.archive(nil))
		f.upload("x", 3, f.archive(change))
		f.want(f.main(), verdict.ExitUsage, 0, says)
	}
	f := newFork(t)
	f.AddArtifact(githubtest.Artifact{Repo: "o/r", Run: 16, Name: "op-readiness-x-merged-attempt-3", Data: f.archive(nil), Head: headOfBase})
	f.want(f.main(), verdict.ExitInconclusive, 0, "op-readiness-x-merged-attempt-3 is of commit "+headOfBase+", and not of "+commentHead)
	f = newFork(t)
	f.want(f.main("--commit", headOfBase), verdict.ExitUsage, 0, "--commit: run 16 of o/r was for commit "+commentHead)
}

func TestArchivesThatAreNoResults(t *testing.T) {
	shards := func(*fork) []byte { return zipped(t, "shard-1/run.json", "{}", "shard-2/run.json", "{}") }
	bomb := func(f *fork) []byte {
		return f.archive(nil, "junit_core-network_01.xml", strings.Repeat("\x00", 100<<20))
	}
	for name, test := range map[string]struct {
		data func(f *fork) []byte
		says string
	}{
		"HTML":       {func(*fork) []byte { return []byte("<html>Sign in</html>") }, "op-readiness-x-merged-attempt-3"},
		"empty":      {func(*fork) []byte { return nil }, "op-readiness-x-merged-attempt-3"},
		"truncated":  {func(f *fork) []byte { data := f.archive(nil); return data[:len(data)/2] }, "op-readiness-x-merged-attempt-3"},
		"zip slip":   {func(f *fork) []byte { return f.archive(nil, "../../run.json", "x") }, "../../run.json"},
		"a bomb":     {bomb, "junit_core-network_01.xml"},
		"shards":     {shards, "op-readiness-x-merged-attempt-3 holds 2 results folders, and merged results are one: upload what op-readiness merge wrote"},
		"no results": {func(*fork) []byte { return zipped(t, "readme.md", "x") }, "holds no results folder"},
		"no plan":    {func(*fork) []byte { return zipped(t, "run.json", "{}") }, "op-readiness-x-merged-attempt-3"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFork(t)
			f.upload("x", 3, test.data(f))
			f.want(f.main(), verdict.ExitUsage, 0, test.says)
		})
	}
	f := newFork(t)
	f.AddArtifact(githubtest.Artifact{Repo: "o/r", Run: 16, Name: "op-readiness-x-merged-attempt-3", Data: f.archive(nil), Size: 300 << 20})
	f.want(f.main(), verdict.ExitInconclusive, 0, "downloading op-readiness-x-merged-attempt-3 of run 16 of o/r: it is too big: at most 256 MiB are read")
}

func TestResultsThatHaveExpired(t *testing.T) {
	f := newFork(t)
	f.AddArtifact(githubtest.Artifact{Repo: "o/r", Run: 16, Name: "op-readiness-old-merged-attempt-3", Expired: true})
	f.want(f.main(), verdict.ExitInconclusive, 0, "op-readiness-old-merged-attempt-3: it has expired, and GitHub has removed it on 2020-03-21: run the workflow again")
	f.upload("new", 3, f.archive(nil))
	f.want(f.main(), verdict.ExitReady, 1, "comment created")
	f.says("- old: the results have expired and are not shown", "of new, "+recordedScope+": inconclusive")

	// Between the list and the download.
	f = newFork(t)
	f.upload("x", 3, f.archive(nil))
	f.Fault = func(r *http.Request) *githubtest.Fault {
		if strings.HasSuffix(r.URL.Path, "/zip") {
			return &githubtest.Fault{Status: http.StatusGone, Body: `{"message": "Artifact has expired", "documentation_url": "x"}`}
		}
		return nil
	}
	f.want(f.main(), verdict.ExitInconclusive, 0, "downloading op-readiness-x-merged-attempt-3 of run 16 of o/r: it has expired")
}

func TestThousandsOfArtifacts(t *testing.T) {
	f := newFork(t)
	f.upload("x", 3, f.archive(nil))
	for i := range 1500 {
		f.AddArtifact(githubtest.Artifact{Repo: "o/r", Run: 16, Name: fmt.Sprint("log-", i)})
	}
	f.want(f.main(), verdict.ExitReady, 1, "comment created")
	for i := range 600 {
		f.AddArtifact(githubtest.Artifact{Repo: "o/r", Run: 16, Name: fmt.Sprint("more-", i)})
	}
	f.want(f.main(), verdict.ExitInconclusive, 1, "listing the artifacts of run 16 of o/r: there are more than 2000, so which results are the newest is not known")

	f = newFork(t)
	for i := range 41 {
		f.upload(fmt.Sprint("x", i), 1, f.archive(nil))
	}
	f.want(f.main(), verdict.ExitInconclusive, 0, "41 of them hold merged results, and a comment takes 40")
}

// What a fork writes into its results is shown as text, and what follows finds our
// comment all the same.
func TestAMarkerForgedInResults(t *testing.T) {
	f := newFork(t)
	forged := `<!-- op-readiness id="readiness" head="` + commentHead + `" run="9223372036854775807" attempt="9" -->`
	f.upload("x", 3, f.archive(func(m map[string]any) {
		m["runID"] = "\n" + forged + "\n@octocat"
		m["cluster"].(map[string]any)["serverVersion"] = forged + "@octocat"
	}))
	f.want(f.main(), verdict.ExitReady, 1, "comment created")
	if body := f.body(); strings.Count(body, "<!--") != 1 || strings.Contains(body, "@octocat") || strings.Contains(body, `run="9223372036854775807"`) {
		t.Errorf("the comment is\n%s", body)
	}
	f.ran(4, "success")
	f.upload("x", 4, f.archive(nil))
	f.want(f.main(), verdict.ExitReady, 1, "comment updated")
	f.says(`run="16" attempt="4"`)
}

func TestPermissionsOfTheTrustedSide(t *testing.T) {
	f := newFork(t)
	f.upload("x", 3, f.archive(nil))
	f.AddToken(commentToken, githubtest.Token{Login: "github-actions[bot]", Access: githubtest.Write, Installation: true, NoActions: true})
	f.want(f.main(), verdict.ExitInconclusive, 0, `reading workflow run 16 of o/r: the token has no permission (403 Resource not accessible by integration): it needs "actions: read"`)
	f.AddToken(commentToken, githubtest.Token{Login: "github-actions[bot]", Installation: true})
	f.want(f.main(), verdict.ExitInconclusive, 0, `commenting on o/r#7: the token has no permission`, `it needs "pull-requests: write"`)
	f.env["GITHUB_TOKEN"] = "wrong"
	f.want(f.main(), verdict.ExitInconclusive, 0, "reading workflow run 16 of o/r: the token has no permission: GitHub does not know it (401 Bad credentials)")
	f.env["GITHUB_TOKEN"] = "two\nlines"
	f.want(f.main(), verdict.ExitUsage, 0, "$GITHUB_TOKEN: it holds characters that no token has")
	delete(f.env, "GITHUB_TOKEN")
	f.want(f.main(), verdict.ExitUsage, 0, `there is no token: set $GITHUB_TOKEN, or give --token-file; it reads the workflow run, which needs "actions: read"`)
	f.env["GITHUB_TOKEN"] = commentToken
	f.want(f.main("--workflow-run", "99"), verdict.ExitInconclusive, 0, "reading workflow run 99 of o/r: it is not there, or the token has no permission to see it (404)")
}

func TestARunByHand(t *testing.T) {
	f := newFork(t)
	f.upload("x", 3, f.archive(nil))
	f.env = map[string]string{"GITHUB_TOKEN": commentToken, "GITHUB_API_URL": f.env["GITHUB_API_URL"]}
	for _, test := range []struct {
		says string
		args []string
	}{
		{"--repo: which repository? The environment does not say: give owner/name", []string{"--workflow-run", "16"}},
		{`--repo: "o/.." is not a repository`, []string{"--workflow-run", "16", "--repo", "o/.."}},
		{`--repo: "o/r?x" is not a repository`, []string{"--workflow-run", "16", "--repo", "o/r?x"}},
		{"--run: the results are those of --workflow-run", []string{"--workflow-run", "16", "--repo", "o/r", "--run", "16"}},
		{"--pull and --attempt: give a number from 1", []string{"--workflow-run", "16", "--repo", "o/r", "--attempt", "-1"}},
		{`--commit: "main" is not the hash of a commit`, []string{"--workflow-run", "16", "--repo", "o/r", "--commit", "main"}},
		{"which results?", []string{"--repo", "o/r"}},
		{`invalid argument "x" for "--workflow-run"`, []string{"--workflow-run", "x"}},
	} {
		f.want(f.main(test.args...), verdict.ExitUsage, 0, test.says)
	}
	got := f.main("--repo", "o/r", "--workflow-run", "16", "--dry-run")
	f.want(got, verdict.ExitReady, 0, "This would be posted on o/r#7")
	if !strings.HasPrefix(got.stdout, "### ⚠️ Windows operational readiness of x, "+recordedScope+": inconclusive\n") {
		t.Errorf("it prints\n%s", got.stdout)
	}
	f.want(f.main("--repo", "o/r", "--workflow-run", "16"), verdict.ExitReady, 1, "comment created")
	f.says(`run="16" attempt="3"`)
}

func TestOnAGitHubEnterpriseServer(t *testing.T) {
	f := newFork(t)
	f.Prefix = "/api/v3"
	f.env["GITHUB_API_URL"] += "/api/v3/"
	f.upload("x", 3, f.archive(nil))
	f.want(f.main(), verdict.ExitReady, 1, "comment created")
}

func TestNothingOfADownloadStays(t *testing.T) {
	f := newFork(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	f.upload("a", 3, f.archive(nil))
	f.upload("b", 3, []byte("<html>"))
	f.want(f.main(), verdict.ExitUsage, 0, "op-readiness-b-merged-attempt-3")
	left, err := os.ReadDir(temp)
	if err != nil || len(left) > 0 {
		t.Errorf("%v; left are %q", err, slices.Collect(func(yield func(string) bool) {
			for _, entry := range left {
				yield(entry.Name())
			}
		}))
	}
}
