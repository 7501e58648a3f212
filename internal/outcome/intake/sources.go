package intake

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/tempdir"
)

// Read reads the results folders that sources name: folders, and URLs of builds in
// buckets, which are taken in. What lets one doubt the results of a build is one of
// their problems then. options are those for the bucket of a URL; temp is a new
// folder, whose parent must exist. What is wrong with the sources is a
// [verdict.UsageError]; of builds that cannot be taken, an error is an [ErrRefused],
// [ErrNoResults], [ErrJob], or one of package bucket.
func Read(ctx context.Context, sources []string, options func(url string) bucket.Options, temp string, limits Limits) ([]*result.Run, error) {
	var dirs, urls []string
	seen := map[string]bool{}
	for _, source := range sources {
		name := strings.TrimSuffix(source, "/")
		switch {
		case !bucket.IsURL(source):
			dirs = append(dirs, source)
		case seen[name]:
			return nil, verdict.UsageErrorf("%s is named twice: name each build once", source)
		default:
			urls = append(urls, source)
		}
		seen[name] = true
	}
	var runs []*result.Run
	if len(dirs) > 0 {
		var err error
		if runs, err = result.LoadEach(dirs...); err != nil {
			return nil, verdict.UsageErrorf("%w", err)
		}
	}
	if len(urls) == 0 {
		return runs, nil
	}
	if err := os.Mkdir(temp, 0o700); err != nil {
		return nil, fmt.Errorf("making a temporary folder: %w", err)
	}
	for i, url := range urls {
		build, err := takeBuild(ctx, url, options(url), filepath.Join(temp, fmt.Sprint(i)), limits)
		if err != nil {
			return nil, err
		}
		taken, err := build.Runs()
		if err != nil {
			return nil, verdict.UsageErrorf("%w", err)
		}
		taken[0].Problems = append(taken[0].Problems, build.Doubts(taken)...)
		runs = append(runs, taken...)
	}
	return runs, nil
}

// ReadNewest reads the results of the newest finished build of the job at a URL, or
// of the build there, as one run: its shards are merged. It returns the build, too,
// whose folder is gone, and why its results may be doubted.
func ReadNewest(ctx context.Context, url string, o bucket.Options) (run *result.Run, build *Build, doubts []string, err error) {
	if url, err = newestBuild(ctx, url, o); err != nil {
		return nil, nil, nil, err
	}
	temp, err := tempdir.New()
	if err != nil {
		return nil, nil, nil, err
	}
	defer temp.RemoveAll()
	if build, err = takeBuild(ctx, url, o, filepath.Join(temp.Path, "build"), Limits{}); err != nil {
		return nil, nil, nil, err
	}
	runs, err := build.Runs()
	if err != nil {
		return nil, nil, nil, err
	}
	run = runs[0]
	if len(runs) > 1 || run.Plan.Shards > 1 && !run.Merged() {
		if run, err = result.Merge(runs, false); err != nil {
			return nil, nil, nil, err
		}
	}
	return run, build, build.Doubts(runs), nil
}
