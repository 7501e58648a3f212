package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/intake"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
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
		if bucket.IsURL(source) {
			if _, err := bucket.ParseURL(source); err != nil {
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
		if !bucket.IsURL(source) {
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
		newest, err := intake.ReadNewest(ctx, source, o.bucket.options(s)(source))
		switch {
		case ctx.Err() != nil:
			return nil, interrupted(ctx, err)
		case err != nil:
			fmt.Fprintf(s.Stderr, "Nothing is compared with the base%s: %v\n", of, err)
			o.baseNotes = append(o.baseNotes, fmt.Sprintf("No results of the base%s could be read: nothing is compared with it.", of))
			continue
		}
		commit := "of no known commit"
		if known := newest.Run.Manifest.Source.Commit; known != "" {
			commit = fmt.Sprintf("commit %q", result.Cut(known, 100))
		}
		fmt.Fprintf(s.Stderr, "The base is %s, %s\n", newest.URL, commit)
		bases[name] = newest.Judgement
		for _, doubt := range newest.Doubts {
			fmt.Fprintf(s.Stderr, "The base%s: %s\n", of, doubt)
			o.baseNotes = append(o.baseNotes, fmt.Sprintf("The results of the base%s are doubtful: its build did not come to an end that fits them.", of))
		}
	}
	return bases, nil
}

// nameAndSource takes [NAME=]DIR or [NAME=]URL apart.
func nameAndSource(arg string) (name, source string) {
	name, source, ok := strings.Cut(arg, "=")
	switch {
	case ok && bucket.IsURL(source) && !bucket.IsURL(name):
		return name, source
	case bucket.IsURL(arg):
		return "", arg
	}
	return nameAndDir(arg)
}
