package github_test

import (
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/github"
)

func TestResultsOfAnotherSubjectAreRefused(t *testing.T) {
	own, other := result.Source{Repository: "o/r", Commit: "c1", Build: "7"}, github.Subject{Repository: "O/R", Commit: "c1", Run: 7}
	with := func(change func(*result.Source)) *result.Run {
		s := own
		change(&s)
		return &result.Run{Manifest: &result.Manifest{Source: s}}
	}
	same := func(*result.Source) {}
	shard := with(same)
	shard.Manifest.Shards = []result.Manifest{{Shard: 1, Source: own}, {Shard: 2, Source: result.Source{Repository: "o/r", Commit: "c1", Build: "8"}}}
	combined := with(same)
	combined.Manifest.Runs = []result.MergedRun{{}, {}}
	for name, c := range map[string]struct {
		subject github.Subject
		run     *result.Run
		says    string // "" is taken
	}{
		"its own":                              {other, with(same), ""},
		"of another commit":                    {other, with(func(s *result.Source) { s.Commit = "c2" }), `for commit "c2", and the workflow run was for c1`},
		"of no commit":                         {other, with(func(s *result.Source) { s.Commit = "" }), `for commit ""`},
		"of another repository":                {other, with(func(s *result.Source) { s.Repository = "evil/r" }), `for repository "evil/r"`},
		"of another run":                       {other, with(func(s *result.Source) { s.Build = "8" }), `of run "8"`},
		"a shard of another run":               {other, shard, "shard 2: the results are of run \"8\""},
		"combined":                             {other, combined, "combined of 2 runs"},
		"of a job's own commit":                {github.Subject{Commit: "c1"}, with(same), ""},
		"of another commit, in its own job":    {github.Subject{Commit: "c2"}, with(same), `for commit "c1", and this is about c2`},
		"of no commit, in its own job":         {github.Subject{Commit: "c2"}, with(func(s *result.Source) { s.Commit = "" }), ""},
		"combined, in its own job":             {github.Subject{Commit: "c1"}, combined, ""},
		"of another repository in its own job": {github.Subject{Repository: "x/y", Commit: "c1"}, with(same), ""},
	} {
		err := c.subject.Check(c.run, "results")
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
