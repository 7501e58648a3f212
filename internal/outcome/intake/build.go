package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/GoogleCloudPlatform/testgrid/metadata"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

// The objects of a build and of a job, as Prow names them
// (https://docs.prow.k8s.io/docs/life-of-a-prow-job/).
const (
	startedFile  = "started.json"
	finishedFile = "finished.json"
	artifactsDir = "artifacts/"
	latestFile   = "latest-build.txt"
	aliasSuffix  = ".txt"
)

// ErrJob says that a URL is that of a job, with many builds.
var ErrJob = errors.New("the folder of a job, and not of one build")

// taken is what was taken in from a bucket.
type taken struct {
	Taken
	// URL is what was asked for.
	URL string
	// Build is the URL of the build that it is, or lies in the artifacts of; ""
	// where it is a folder of results somewhere else in a bucket.
	Build string
	// Finished is what finished.json says; nil where there is none. Unread says
	// why it cannot be read.
	Finished *metadata.Finished
	Unread   string

	// results is where below URL the results are.
	results string
}

// Passed reports how the job ended, in the way in which TestGrid reads it: what
// result says counts only where passed is not there.
func Passed(f *metadata.Finished) bool {
	if f.Passed != nil {
		return *f.Passed
	}
	return f.Result == "SUCCESS"
}

// takeBuild takes the results folders of a build, or below another prefix, into
// the new folder dir, whose parent must exist. The URL is one that
// [bucket.ParseURL] takes. An error is an [ErrRefused], [ErrNoResults] or
// [ErrJob] where what lies there is at fault, an error of package bucket where it
// cannot be read; whatever it is, dir is not there.
func takeBuild(ctx context.Context, url string, o bucket.Options, dir string, limits Limits) (*taken, error) {
	b, err := open(ctx, url, o)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	s := &shelf{bucket: b, url: strings.TrimSuffix(url, "/"), limits: limits.withDefaults()}
	build, err := s.take(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := build.around(ctx, o); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return build, nil
}

// around looks at the build in whose artifacts the results lie: to name a folder
// in it must not hide how it ended.
func (b *taken) around(ctx context.Context, o bucket.Options) error {
	url, _, inside := strings.Cut(b.URL+"/", "/"+artifactsDir)
	if b.Build != "" || !inside {
		return nil
	}
	above, err := open(ctx, url, o)
	if errors.Is(err, bucket.ErrURL) {
		return nil // artifacts is the bucket's name
	}
	if err != nil {
		return err
	}
	defer above.Close()
	b.Build = url
	b.Finished, b.Unread, err = ReadFinished(ctx, above, "")
	return err
}

// open opens a bucket for reading: a folder that is not there is not made.
func open(ctx context.Context, url string, o bucket.Options) (*bucket.Bucket, error) {
	at, err := bucket.ParseURL(url)
	if err != nil {
		return nil, err
	}
	if at.Scheme == bucket.File {
		if info, err := os.Stat(at.Dir); errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("reading %s: the folder %w", url, bucket.ErrNotExist)
		} else if err != nil || !info.IsDir() {
			return nil, errors.Join(err, fmt.Errorf("reading %s: it is not a folder", url))
		}
	}
	return bucket.Open(ctx, url, o)
}

// shelf is where a build lies.
type shelf struct {
	bucket *bucket.Bucket
	url    string
	limits Limits
}

func (s *shelf) take(ctx context.Context, dir string) (*taken, error) {
	there, err := s.look(ctx)
	switch {
	case err != nil:
		return nil, err
	case there.job:
		return nil, fmt.Errorf("%s is %w: name one of its builds%s", s.url, ErrJob, there.newest(s.url))
	case there.empty:
		return nil, fmt.Errorf("%s %w: nothing lies there; see whether bucket, job and build are spelled right", s.url, ErrNoResults)
	}
	build := &taken{Taken: Taken{Dir: dir}, URL: s.url}
	below := ""
	if there.build {
		build.Build, below = s.url, artifactsDir
		build.results = "/" + strings.TrimSuffix(artifactsDir, "/")
		// It is sent last: where it is there, so is the rest.
		if build.Finished, build.Unread, err = ReadFinished(ctx, s.bucket, ""); err != nil {
			return nil, err
		}
	}
	wanted, all, err := s.choose(ctx, below)
	if err != nil {
		return nil, err
	}
	err = unpack(dir, func(f *folder) error {
		for _, key := range wanted {
			if err := s.download(ctx, f, below+key, key); err != nil {
				return err
			}
		}
		build.Files, build.LeftOut = f.files, all-f.files
		if !f.results {
			return fmt.Errorf("%s %w: no %s in %s, or up to two folders down%s", s.url, ErrNoResults, result.ManifestFile, cmp.Or(strings.TrimSuffix(below, "/"), "it"), build.why())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return build, nil
}

// why says why a build may have no results.
func (b *taken) why() string {
	if b.Build != "" && b.Finished == nil {
		return "; the build has not finished"
	}
	return ""
}

// layout is what lies at a prefix.
type layout struct {
	empty, build, job bool
	builds            []string // of a job, newest first: folders, or aliases
}

func (l *layout) newest(url string) string {
	if len(l.builds) == 0 {
		return ""
	}
	return fmt.Sprintf(", such as %s/%s", url, strings.TrimSuffix(strings.TrimSuffix(l.builds[0], aliasSuffix), "/"))
}

// look lists the top of the prefix, and says what it is.
func (s *shelf) look(ctx context.Context) (*layout, error) {
	l := &layout{empty: true}
	results, latest, seen := false, false, 0
	err := s.bucket.List(ctx, bucket.ListOptions{Delimiter: "/"}, func(a *bucket.Attrs) error {
		if seen++; seen > maxBuilds {
			return fmt.Errorf("%s: over %d folders lie there: %w", s.url, maxBuilds, ErrRefused)
		}
		l.empty = false
		switch {
		case a.Key == result.ManifestFile, a.Key == result.PlanFile:
			results = true
		case a.Key == startedFile, a.Key == finishedFile, a.Key == artifactsDir:
			l.build = true
		case a.Key == latestFile:
			latest = true
		case buildID(a.Key) > 0:
			l.builds = append(l.builds, a.Key)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if results {
		l.build = false
	}
	l.job = !results && !l.build && (latest || len(l.builds) > 0)
	slices.SortFunc(l.builds, func(a, b string) int { return cmp.Compare(buildID(b), buildID(a)) })
	return l, nil
}

// maxBuilds is how many builds of a job are looked at.
const maxBuilds = 100_000

// buildID is the number of a build's folder ("123/") or alias ("123.txt"), or 0.
func buildID(key string) uint64 {
	id, isFolder := strings.CutSuffix(key, "/")
	if !isFolder {
		var isAlias bool
		if id, isAlias = strings.CutSuffix(key, aliasSuffix); !isAlias {
			return 0
		}
	}
	return number(id)
}

func number(id string) uint64 {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || strconv.FormatUint(n, 10) != id {
		return 0
	}
	return n
}

// ReadFinished reads the finished.json of the build in a folder of a bucket, which
// ends with a slash or is the top, "". Where there is none, f is nil; where TestGrid
// could not read it either, f is nil, too, and unread says why.
func ReadFinished(ctx context.Context, b *bucket.Bucket, dir string) (f *metadata.Finished, unread string, err error) {
	f = &metadata.Finished{}
	switch err := b.ReadJSON(ctx, dir+finishedFile, f); {
	case errors.Is(err, bucket.ErrNotExist):
		return nil, "", nil
	case errors.Is(err, bucket.ErrTooLarge):
		return nil, "it is over 1 MiB", nil
	case errors.Is(err, bucket.ErrMalformed):
		return nil, result.Cut(err.Error(), 200), nil
	case err != nil:
		return nil, "", err
	}
	return f, "", nil
}

// choose lists what lies below a prefix, and returns the names that are taken,
// relative to it, and how many there are.
func (s *shelf) choose(ctx context.Context, below string) (wantedNames []string, all int, err error) {
	seen := newNames()
	err = s.bucket.List(ctx, bucket.ListOptions{Prefix: below}, func(a *bucket.Attrs) error {
		if all++; all > s.limits.Entries {
			return fmt.Errorf("%s: it has over %d objects: %w", s.url, s.limits.Entries, ErrRefused)
		}
		name := strings.TrimPrefix(a.Key, below)
		refuse := func(err error) error {
			return fmt.Errorf("%s: object %q: %w: %w", s.url, result.Cut(a.Key, 200), err, ErrRefused)
		}
		take, err := wanted(name, s.limits.Logs)
		switch {
		case !take && err == nil: // it stays where it is, whatever its name
			return nil
		case harmless(name) != nil:
			return refuse(harmless(name))
		case err != nil:
			return refuse(err)
		}
		if err := seen.add(name); err != nil {
			return refuse(err)
		}
		if a.Size > s.limits.File {
			return refuse(fmt.Errorf("it has %d bytes, and %s are allowed", a.Size, bytesOf(s.limits.File)))
		}
		wantedNames = append(wantedNames, name)
		return nil
	})
	return wantedNames, all, err
}

func (s *shelf) download(ctx context.Context, f *folder, key, name string) (err error) {
	file, err := f.create(name)
	if err != nil {
		return fmt.Errorf("taking in %s: %w", s.url, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	limit := min(s.limits.File, s.limits.Total-f.total)
	n, err := s.bucket.Download(ctx, key, limit, file)
	f.total += n
	if errors.Is(err, bucket.ErrNotRegular) {
		return fmt.Errorf("%w: %w", err, ErrRefused)
	}
	if errors.Is(err, bucket.ErrTooLarge) {
		if limit < s.limits.File {
			return fmt.Errorf("%s: object %q: with it, the build has over %s: %w", s.url, key, bytesOf(s.limits.Total), ErrRefused)
		}
		return fmt.Errorf("%s: object %q: it has over %s, unpacked: %w", s.url, key, bytesOf(s.limits.File), ErrRefused)
	}
	return err
}

// Runs reads the results folders that were taken in. What is said of them calls
// them by their URLs.
func (b *taken) Runs() ([]*result.Run, error) {
	runs, err := result.LoadEach(b.Dir)
	if err != nil {
		return nil, b.renamed(err)
	}
	for _, run := range runs {
		rel, err := filepath.Rel(b.Dir, run.Dir)
		if err != nil {
			return nil, err
		}
		run.Name = b.URL + b.results
		if rel != "." {
			run.Name += "/" + path.Clean(filepath.ToSlash(rel))
		}
	}
	return runs, nil
}

// renamed gives an error the build's URL in place of the folder on this machine.
func (b *taken) renamed(err error) error {
	return &renamedError{strings.ReplaceAll(err.Error(), b.Dir, b.URL+b.results), err}
}

type renamedError struct {
	text  string
	cause error
}

func (e *renamedError) Error() string { return e.text }
func (e *renamedError) Unwrap() error { return e.cause }

// Doubts are reasons not to trust the results of a build as they are: it has
// not finished, or ended otherwise than its results say. The runs are those of
// [taken.Runs], and whole is what [result.Whole] makes of them, judged; both nil where
// it makes nothing.
func (b *taken) Doubts(runs []*result.Run, whole *result.Run, judgement *verdict.Judgement) []string {
	switch {
	case b.Build == "":
		return nil
	case b.Unread != "":
		return []string{fmt.Sprintf("the %s of build %s cannot be read: %s", finishedFile, b.Build, b.Unread)}
	case b.Finished == nil:
		return []string{fmt.Sprintf("build %s has no %s: it still runs, or was killed, and its results may not all be there", b.Build, finishedFile)}
	case b.Finished.Timestamp == nil || *b.Finished.Timestamp <= 0:
		return []string{fmt.Sprintf("the %s of build %s has no time of its end: by that, it still runs", finishedFile, b.Build)}
	}
	// A build that lacks a shard does not pass, however ready what it has is.
	ready, wholly := true, judgement != nil && judgement.Verdict == verdict.Ready
	for _, run := range newest(runs) {
		own := judgement
		if run != whole {
			own = verdict.Judge(run)
		}
		ready = ready && own.Verdict.ExitCode() == verdict.ExitReady // an empty shard is in no way
	}
	switch {
	case Passed(b.Finished) && !ready && !wholly:
		return []string{fmt.Sprintf("the %s of build %s says that it passed, and its results are not ready", finishedFile, b.Build)}
	case !Passed(b.Finished) && ready && wholly:
		return []string{fmt.Sprintf("the %s of build %s says that it did not pass, and its results are ready: something else failed, or they are of another build", finishedFile, b.Build)}
	}
	return nil
}

// newest are the runs without those of which there is a newer attempt.
func newest(runs []*result.Run) []*result.Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r *result.Run) bool {
		return slices.ContainsFunc(runs, func(other *result.Run) bool {
			a, b := r.Manifest, other.Manifest
			return a.RunID == b.RunID && a.Shard == b.Shard && a.Attempt < b.Attempt
		})
	})
}

// tries is how many builds are looked at for one that has finished.
const tries = 20

// newestBuild returns the URL of the newest finished build of the job at a URL, or
// that URL where it is not a job's. The error is [ErrNoResults] where there is no
// such build among the newest ones.
func newestBuild(ctx context.Context, url string, o bucket.Options) (string, error) {
	b, err := open(ctx, url, o)
	if err != nil {
		return "", err
	}
	defer b.Close()
	s := &shelf{bucket: b, url: strings.TrimSuffix(url, "/")}
	if build, err := s.latest(ctx); build != "" || err != nil {
		return build, err
	}
	there, err := s.look(ctx)
	switch {
	case err != nil:
		return "", err
	case there.empty:
		return "", fmt.Errorf("%s %w: nothing lies there", s.url, ErrNoResults)
	case !there.job:
		return s.url, nil
	}
	for i, key := range there.builds {
		if i == tries {
			break
		}
		if build, err := s.finishedBuild(ctx, key, o); build != "" || err != nil {
			return build, err
		}
	}
	return "", fmt.Errorf("%s %w: none of the job's newest %d builds has finished", s.url, ErrNoResults, min(tries, len(there.builds)))
}

// latest is the build that latest-build.txt names, if it has finished.
func (s *shelf) latest(ctx context.Context) (string, error) {
	data, err := s.bucket.ReadAll(ctx, latestFile, 64)
	if errors.Is(err, bucket.ErrNotExist) || errors.Is(err, bucket.ErrTooLarge) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(data))
	if number(id) == 0 {
		return "", nil
	}
	return s.finishedBuild(ctx, id+"/", bucket.Options{})
}

// finishedBuild is the URL of a build that has finished; "" of one that has not.
func (s *shelf) finishedBuild(ctx context.Context, key string, o bucket.Options) (string, error) {
	if strings.HasSuffix(key, aliasSuffix) {
		return s.aliased(ctx, key, o)
	}
	_, err := s.bucket.Stat(ctx, key+finishedFile)
	switch {
	case errors.Is(err, bucket.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	}
	return strings.TrimSuffix(s.url+"/"+key, "/"), nil
}

// maxAlias is how long a URL in an alias may be.
const maxAlias = 4 << 10

// aliased follows an alias within its bucket: one that leads elsewhere could
// have us read what only we may read.
func (s *shelf) aliased(ctx context.Context, key string, o bucket.Options) (string, error) {
	data, err := s.bucket.ReadAll(ctx, key, maxAlias)
	if err != nil {
		return "", err
	}
	url := strings.TrimSpace(string(data))
	at, err := bucket.ParseURL(url)
	if err != nil || at.Scheme != s.bucket.Scheme || at.Scheme == bucket.File || at.Name != s.bucket.Name {
		return "", fmt.Errorf("%s/%s leads to %q, which is not in the same bucket: %w", s.url, key, result.Cut(url, 200), ErrRefused)
	}
	b, err := bucket.Open(ctx, url, o)
	if err != nil {
		return "", err
	}
	defer b.Close()
	return (&shelf{bucket: b, url: url}).finishedBuild(ctx, "", o)
}
