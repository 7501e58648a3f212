package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/intake"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/tempdir"
)

// checkBases checks what is said of the bases, without reading them.
func (o *commentOptions) checkBases() error {
	named := map[string]bool{}
	for _, b := range o.Base {
		name, source := nameAndSource(b)
		if named[name] {
			return usageErrorf("--base: two are named %q", name)
		}
		named[name] = true
		if isURL(source) {
			if err := bucketURL(source); err != nil {
				return usageErrorf("--base: %w", err)
			}
		}
	}
	return nil
}

// bases reads and judges the results of the base branch, by name. What cannot be
// had from a bucket has no judgement: that is noted, and nothing is compared.
func (o *commentOptions) bases(ctx context.Context, s *Surroundings) (map[string]*verdict.Judgement, error) {
	bases := map[string]*verdict.Judgement{}
	for _, b := range o.Base {
		name, source := nameAndSource(b)
		if !isURL(source) {
			run, err := result.Load(source)
			if err != nil {
				return nil, usageErrorf("--base: %w", err)
			}
			bases[name] = verdict.Judge(run)
			continue
		}
		of := ""
		if name != "" {
			of = " of " + name
		}
		judgement, doubts, err := o.baseIn(ctx, s, source)
		switch {
		case ctx.Err() != nil:
			return nil, interrupted(ctx, err)
		case err != nil:
			fmt.Fprintf(s.Stderr, "Nothing is compared with the base%s: %v\n", of, err)
			o.baseNotes = append(o.baseNotes, fmt.Sprintf("No results of the base%s could be read: nothing is compared with it.", of))
		}
		for _, doubt := range doubts {
			fmt.Fprintf(s.Stderr, "The base%s: %s\n", of, doubt)
			o.baseNotes = append(o.baseNotes, fmt.Sprintf("The results of the base%s are doubtful: its build did not come to an end that fits them.", of))
		}
		bases[name] = judgement
	}
	return bases, nil
}

// baseIn takes the results of a build out of a bucket, or those of the newest
// finished build of a job, and judges them.
func (o *commentOptions) baseIn(ctx context.Context, s *Surroundings, url string) (judgement *verdict.Judgement, doubts []string, err error) {
	options := o.bucket.options(s)(url)
	newest, err := intake.Newest(ctx, url, options)
	if err != nil {
		return nil, nil, err
	}
	temp, err := tempdir.New()
	if err != nil {
		return nil, nil, err
	}
	defer temp.RemoveAll()
	build, err := intake.Bucket(ctx, newest, options, filepath.Join(temp.Path, "build"), intake.Limits{})
	if err != nil {
		return nil, nil, err
	}
	runs, err := build.Runs()
	if err != nil {
		return nil, nil, err
	}
	run, err := result.Whole(runs)
	if err != nil {
		return nil, nil, err
	}
	of := "of no known commit"
	if commit := run.Manifest.Source.Commit; commit != "" {
		of = fmt.Sprintf("commit %q", result.Cut(commit, 100))
	}
	fmt.Fprintf(s.Stderr, "The base is %s, %s\n", newest, of)
	judgement = verdict.Judge(run)
	return judgement, build.Doubts(runs, run, judgement), nil
}

// nameAndSource takes [NAME=]DIR or [NAME=]URL apart.
func nameAndSource(arg string) (name, source string) {
	name, source, ok := strings.Cut(arg, "=")
	switch {
	case ok && isURL(source) && !isURL(name):
		return name, source
	case isURL(arg):
		return "", arg
	}
	return nameAndDir(arg)
}
