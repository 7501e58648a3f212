package cli

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/windows-op-readiness/windows-op-readiness/internal/assess"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/progress"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// tellPrepared says what is about to run.
func tellPrepared(s *Surroundings, p *assess.Prepared) {
	if p.Finished {
		return
	}
	fmt.Fprintf(s.Stderr, "%s: %s to run for %s of plan %.19s; results in %s\n",
		p.Server(), text.Count(len(p.Due), "test"), text.Count(len(p.Plan.Cases), "case"), p.Plan.Digest, p.Dir())
	if len(p.Due) == 0 && p.Previous == nil {
		// The verdict has the exit code.
		report.WriteIdle(s.Stderr, p.Plan, p.Manifest.Shard, func(c *result.PlannedCase) string {
			_, reason := verdict.Decide(c, p.Manifest)
			return reason
		})
	}
}

// tellFinished shows the report of a run that has nothing left to run again, and
// what would run its failed tests once more.
func tellFinished(s *Surroundings, p *assess.Prepared, judgement *verdict.Judgement, output string) error {
	results := report.Results{Run: p.Previous, Judgement: judgement, Width: terminalWidth(s)}
	if err := results.Write(s.Stdout, report.Format(output)); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	fmt.Fprintf(s.Stderr, "%s: the run is finished, and no test is left to run; nothing was changed\n", p.Dir())
	if failed, enough := run.Spent(p.Previous); failed > 0 {
		fmt.Fprintf(s.Stderr, "failed tests: %d; to run them again: op-readiness run --resume %s --retries %d\n", failed, p.Dir(), enough)
	}
	return exitWith(judgement.ExitCode())
}

// endOf joins how the tests ended with what was concluded. What was learned
// before an error is judged and reported, too; the exit code is the error's,
// whatever the verdict.
func endOf(runErr, err error) error {
	if runErr == nil || errors.Is(runErr, run.ErrInterrupted) {
		return err
	}
	if exit := (*exitError)(nil); errors.As(err, &exit) && exit.cause == nil {
		err = nil
	}
	return errors.Join(runErr, err)
}

// observer shows how the tests go on.
func (o *runOptions) observer(s *Surroundings) func(*result.Plan, *result.Manifest, []*result.PlannedTest) assess.Observer {
	return func(p *result.Plan, m *result.Manifest, due []*result.PlannedTest) assess.Observer {
		return progress.New(o.style(s), s.Stderr, widthOf(s.Stderr), p, due, m.Settings.Procs, time.Now)
	}
}

// style is how progress is shown: as asked, else as fits where it goes.
func (o *runOptions) style(s *Surroundings) progress.Style {
	switch {
	case o.LogFormat == "json":
		return progress.JSON
	case s.Getenv("GITHUB_ACTIONS") == "true":
		return progress.GitHub
	case o.LogFormat == "" && isTerminal(s.Stderr) && s.Getenv("CI") == "":
		return progress.Live
	}
	return progress.Plain
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth is that of standard output.
func terminalWidth(s *Surroundings) int { return widthOf(s.Stdout) }

// widthOf returns how many columns the terminal has that w is, 0 for no
// terminal.
func widthOf(w any) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}
