package github

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// Subject is what a comment is about.
type Subject struct {
	// Repository is owner/name, Commit the one that was tested; "" for any.
	Repository, Commit string
	// Run is the id of the workflow run whose results these are, where another one
	// reports on it; 0 where results are this job's own.
	Run uint64
}

// Check returns an error when results, called by name, are not those of the
// subject. Whoever made them can write anything into them: where another workflow
// did, they must say that they are, each shard of them.
func (s Subject) Check(run *result.Run, name string) error {
	if n := len(run.Manifest.Runs); n > 0 && s.Run != 0 {
		return fmt.Errorf("%s: the results are combined of %d runs, and this is about run %d: upload what op-readiness merge wrote of that run alone", name, n, s.Run)
	}
	if err := s.check(&run.Manifest.Source, name); err != nil || s.Run == 0 {
		return err
	}
	for _, m := range run.Manifests() {
		if err := s.check(&m.Source, fmt.Sprintf("%s: shard %d", name, m.Shard)); err != nil {
			return err
		}
	}
	return nil
}

func (s Subject) check(source *result.Source, name string) error {
	whose := "this is about"
	if s.Run != 0 {
		whose = "the workflow run was for"
	}
	if s.Commit != "" && source.Commit != s.Commit && (s.Run != 0 || source.Commit != "") {
		return fmt.Errorf("%s: the results are for commit %q, and %s %s: take the results of that commit", name, result.Cut(source.Commit, 100), whose, s.Commit)
	}
	if s.Run == 0 {
		return nil
	}
	if !strings.EqualFold(source.Repository, s.Repository) {
		return fmt.Errorf("%s: the results are for repository %q, and this is about %s: take the results of that repository", name, result.Cut(source.Repository, 100), s.Repository)
	}
	if id := strconv.FormatUint(s.Run, 10); source.Build != id {
		return fmt.Errorf("%s: the results are of run %q, and this is about run %s: take the results of that run", name, result.Cut(source.Build, 100), id)
	}
	return nil
}

// repository is a name that GitHub gives.
var repository = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]+$`)

// ValidRepository reports whether a repository can have the name, which is
// owner/name.
func ValidRepository(name string) bool {
	return repository.MatchString(name) && !strings.HasSuffix(name, "/.") && !strings.HasSuffix(name, "/..")
}
