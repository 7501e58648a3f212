package grid

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	configpb "github.com/GoogleCloudPlatform/testgrid/pb/config"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

// folderDays is how far back builds in folders are read: they are kept there
// to be looked at.
const folderDays = 3 * 365

// Reading is by which configuration a source is read.
type Reading struct {
	// Config is a TestGrid configuration, a file or a folder; "" is a tab for each
	// job that is found. Group is the only test group of it to read, "" for all.
	Config, Group string
	// Days is for how many days back builds are read; 0 is as configured, or else
	// 14 in a bucket, and 3 years in a folder.
	Days int
	// Job is the name of the job, for a results folder.
	Job string
}

// Open opens what [Open] does, or a results folder, which is laid out as the one
// group of the configuration would have it. What is wrong with name or the
// configuration is a [verdict.UsageError].
func (r *Reading) Open(ctx context.Context, name string, o bucket.Options) (*Source, error) {
	if !bucket.IsURL(name) {
		if isResults(name) {
			return r.openResults(name)
		}
		switch info, err := os.Stat(name); {
		case err != nil:
			return nil, verdict.UsageErrorf("%w; name a folder, gs://BUCKET or s3://BUCKET", err)
		case !info.IsDir():
			return nil, verdict.UsageErrorf("%s is a file: name the folder of a bucket, of a job or of results", name)
		}
	}
	source, err := Open(ctx, name, o)
	if errors.Is(err, bucket.ErrURL) || errors.Is(err, errBuild) {
		return nil, verdict.UsageErrorf("%w", err)
	}
	return source, err
}

func (r *Reading) openResults(name string) (*Source, error) {
	job := r.Job
	if r.Config != "" {
		cfg, err := r.readConfig()
		if err != nil {
			return nil, err
		}
		if len(cfg.GetTestGroups()) != 1 {
			return nil, verdict.UsageErrorf("--config %s has %d test groups, and a results folder is one build of one of them: name it with --group", r.Config, len(cfg.GetTestGroups()))
		}
		job = cfg.GetTestGroups()[0].GetName()
	}
	source, err := OpenResults(name, []string{name}, job)
	if err != nil {
		return nil, verdict.UsageErrorf("%w", err)
	}
	source.results = true
	return source, nil
}

// Configuration returns the configuration by which a source is read that
// [Reading.Open] has opened. An error of reading the source says what that takes.
func (r *Reading) Configuration(ctx context.Context, s *Source) (*configpb.Configuration, error) {
	days := r.Days
	switch {
	case days == 0 && s.Kept:
		days = defaultDays
	case days == 0:
		days = folderDays
	}
	if r.Config != "" {
		cfg, err := r.readConfig()
		if err != nil {
			return nil, s.Unread(err)
		}
		if s.results {
			group := cfg.GetTestGroups()[0]
			group.ResultSource, group.GcsPrefix = nil, s.Prefix
		}
		return cfg, nil
	}
	if s.results {
		return Standard(days, s.Prefix), nil
	}
	prefixes, err := Find(ctx, s.Client, s.Prefix)
	if err != nil {
		return nil, s.Unread(err)
	}
	return Standard(days, prefixes...), nil
}

func (r *Reading) readConfig() (*configpb.Configuration, error) {
	cfg, err := readConfig(r.Config)
	if err != nil {
		return nil, verdict.UsageErrorf("--config: %w", err)
	}
	if r.Group != "" {
		if cfg, err = Only(cfg, r.Group); err != nil {
			return nil, verdict.UsageErrorf("--group: %w", err)
		}
	}
	if r.Days > 0 {
		for _, g := range cfg.GetTestGroups() {
			g.DaysOfResults = int32(r.Days)
		}
	}
	return cfg, nil
}

// Unread says what kept builds from being read, and what reading them takes.
func (s *Source) Unread(err error) error {
	if errors.Is(err, bucket.ErrNoBucket) {
		permission := "storage.objects.list"
		if strings.HasPrefix(s.Name, bucket.S3+"://") {
			permission = "s3:ListBucket"
		}
		return fmt.Errorf("reading %s: %w; fix its name, or use credentials that have %s", s.Name, bucket.ErrNoBucket, permission)
	}
	return fmt.Errorf("%s: %w", s.Name, s.Err(err))
}

// BuildURL returns where a build is found, of the folder of its job and its id: as
// pattern has it, in which <gcs_prefix> and <changelist> stand for these, else where
// it was read.
func (s *Source) BuildURL(pattern string) func(prefix, build string) string {
	if pattern != "" {
		return func(prefix, build string) string {
			return strings.NewReplacer("<gcs_prefix>", prefix, "<changelist>", build).Replace(pattern)
		}
	}
	return func(prefix, build string) string {
		_, object, _ := strings.Cut(prefix, "/")
		at := s.URL(strings.TrimPrefix(object+"/"+build, "/"))
		if filepath.IsAbs(at) {
			return FileURL(at)
		}
		return at
	}
}

// FileURL is the URL of a file or folder, by its absolute path.
func FileURL(path string) string {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	return (&url.URL{Scheme: "file", Path: p}).String()
}
