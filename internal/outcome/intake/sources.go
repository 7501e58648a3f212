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
		var judgement *verdict.Judgement
		whole, err := result.Whole(taken)
		if err == nil { // else it is said when all are merged
			judgement = verdict.Judge(whole)
		}
		taken[0].Problems = append(taken[0].Problems, build.Doubts(taken, whole, judgement)...)
		runs = append(runs, taken...)
	}
	return runs, nil
}

// Newest is the build that [ReadNewest] has read.
type Newest struct {
	URL string
	// Run is what it holds, its shards merged, and Judgement what that comes to.
	Run       *result.Run
	Judgement *verdict.Judgement
	// Doubts are why its results may be doubted.
	Doubts []string
}

// ReadNewest reads the results of the newest finished build of the job at a URL, or
// of the build there.
func ReadNewest(ctx context.Context, url string, o bucket.Options) (newest *Newest, err error) {
	if url, err = newestBuild(ctx, url, o); err != nil {
		return nil, err
	}
	temp, err := tempdir.New()
	if err != nil {
		return nil, err
	}
	defer temp.RemoveAll()
	build, err := takeBuild(ctx, url, o, filepath.Join(temp.Path, "build"), Limits{})
	if err != nil {
		return nil, err
	}
	runs, err := build.Runs()
	if err != nil {
		return nil, err
	}
	newest = &Newest{URL: build.URL}
	if newest.Run, err = result.Whole(runs); err != nil {
		return nil, err
	}
	newest.Judgement = verdict.Judge(newest.Run)
	newest.Doubts = build.Doubts(runs, newest.Run, newest.Judgement)
	return newest, nil
}
