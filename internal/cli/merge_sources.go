package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/intake"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

// bucketOptions say how the buckets are reached that results come from.
type bucketOptions struct {
	Endpoint  string
	Anonymous bool
}

func (o *bucketOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Endpoint, "endpoint", "", "URL of a GCS emulator or of a store that speaks S3 (default $STORAGE_EMULATOR_HOST for gs://)")
	f.BoolVar(&o.Anonymous, "anonymous", false, "use no credentials")
}

// options are those for the bucket of a URL.
func (o *bucketOptions) options(s *Surroundings) func(url string) bucket.Options {
	return func(url string) bucket.Options {
		endpoint := o.Endpoint
		if endpoint == "" && strings.HasPrefix(url, bucket.GCS+"://") {
			endpoint = s.Getenv("STORAGE_EMULATOR_HOST")
		}
		if endpoint != "" && !strings.Contains(endpoint, "://") {
			endpoint = "http://" + endpoint
		}
		return bucket.Options{Endpoint: endpoint, Anonymous: o.Anonymous, Retry: bucket.Retry{
			Note: func(what string, err error, wait time.Duration) {
				fmt.Fprintf(s.Stderr, "%s: %v; trying again in %s\n", what, err, wait.Round(100*time.Millisecond))
			},
		}}
	}
}

// bucketURL returns an error when a URL is not that of a bucket.
func bucketURL(url string) error {
	_, err := bucket.ParseURL(url)
	return err
}

// isURL reports whether an argument names a place in a bucket, and not a folder.
func isURL(arg string) bool { return strings.Contains(arg, "://") }

// readSources reads the results folders that arguments name: folders, and builds
// in buckets, which are taken into the new folder temp. What lets one doubt the
// results of a build is one of their problems then.
func readSources(ctx context.Context, args []string, options func(url string) bucket.Options, temp string, limits intake.Limits) ([]*result.Run, error) {
	var dirs []string
	seen := map[string]bool{}
	for _, arg := range args {
		switch {
		case !isURL(arg):
			dirs = append(dirs, arg)
		case seen[strings.TrimSuffix(arg, "/")]:
			return nil, usageErrorf("%s is named twice: name each build once", arg)
		}
		seen[strings.TrimSuffix(arg, "/")] = true
	}
	var runs []*result.Run
	if len(dirs) > 0 {
		var err error
		if runs, err = result.LoadEach(dirs...); err != nil {
			return nil, usageErrorf("%w", err)
		}
	}
	if len(dirs) == len(args) {
		return runs, nil
	}
	if err := os.Mkdir(temp, 0o700); err != nil {
		return nil, fmt.Errorf("making a temporary folder: %w", err)
	}
	for i, url := range slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !isURL(arg) }) {
		build, err := intake.Bucket(ctx, url, options(url), filepath.Join(temp, fmt.Sprint(i)), limits)
		if err != nil {
			return nil, sourceError(ctx, err)
		}
		taken, err := build.Runs()
		if err != nil {
			return nil, usageErrorf("%w", err)
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

// sourceError gives an error of taking results in its exit code: what was named
// is wrong, or it could not be read.
func sourceError(ctx context.Context, err error) error {
	wrong := []error{intake.ErrRefused, intake.ErrNoResults, intake.ErrJob, bucket.ErrURL, bucket.ErrNotExist, bucket.ErrNoBucket}
	switch {
	case ctx.Err() != nil:
		return &exitError{code: verdict.ExitInterrupted, cause: err}
	case slices.ContainsFunc(wrong, func(e error) bool { return errors.Is(err, e) }):
		return usageErrorf("%w", err)
	}
	return &exitError{code: verdict.ExitInconclusive, cause: err}
}
