package rehearse

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

// Write says what would be done, with uploads to the URL of a bucket.
func (p *RehearsalPlan) Write(w io.Writer, url string) error {
	fmt.Fprintf(w, "build folder: %s/%s/\n", url, p.Build)
	for _, c := range p.Commands() {
		fmt.Fprintf(w, "command:      %s\n", c)
	}
	env := p.Env()
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if _, err := fmt.Fprintf(w, "%s=%s\n", name, env[name]); err != nil {
			return err
		}
	}
	return nil
}

// WriteOutcome says where in a bucket the build is, what is in it, and what the job
// came to.
func (p *RehearsalPlan) WriteOutcome(w io.Writer, url string, build *Build, outcome *Outcome) {
	how := fmt.Sprintf("exit code %d", outcome.Code)
	switch {
	case outcome.Code == timedOut && outcome.Took >= p.Timeout:
		how = fmt.Sprintf("ended by its timeout of %s", p.Timeout)
	case outcome.Code == timedOut:
		how = fmt.Sprintf("exit code %d: its command was not found, or could not be started; see build-log.txt", outcome.Code)
	case outcome.Code == aborted:
		how = "aborted"
	}
	fmt.Fprintf(w, "\nbuild folder: %s\n", local(build.URL))
	for _, f := range build.Files {
		fmt.Fprintf(w, "  %9d %s\n", f.Size, f.Name)
	}
	fmt.Fprintf(w, "finished:     %s (%s, after %s)\n", cmp.Or(build.Result, "no finished.json"), how, outcome.Took.Round(time.Second))
	for _, name := range []string{"kubernetes-version", "windows-version", "requirements"} {
		if value, ok := build.Metadata[name].(string); ok && value != "" {
			fmt.Fprintf(w, "  %s: %s\n", name, value)
		}
	}
	if run, err := result.Load(outcome.Artifacts); err == nil {
		j := verdict.Judge(run)
		fmt.Fprintf(w, "verdict:      %s%s (%s; %s)\n", j.Verdict, j.AsDeclared(), j.Scope, j.Counts)
	} else {
		fmt.Fprintf(w, "verdict:      none: the job left no results in $ARTIFACTS\n")
	}
	fmt.Fprintf(w, "see the grid: op-readiness testgrid preview %s\n", local(url+"/"+path.Dir(p.Build)))
}

// local shows the URL of a folder as its path.
func local(url string) string { return strings.TrimPrefix(url, bucket.File+"://") }
