package testgrid

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/GoogleCloudPlatform/testgrid/metadata"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/junit"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
)

// Results are those of a run, as they are published: judged again, and as a
// whole where they come from several shards.
type Results struct {
	// Run is the whole.
	Run       *result.Run
	Judgement *verdict.Judgement
	// Folders are the results folders as they were read, in the order of
	// shards and attempts.
	Folders []*result.Run
}

// ReadResults reads the results folders in dirs, or up to two levels below
// them.
func ReadResults(dirs []string) (*Results, error) {
	folders, err := result.LoadEach(dirs...)
	if err != nil {
		return nil, err
	}
	whole, err := result.Whole(folders) // a shard alone is not a success
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(folders, func(a, b *result.Run) int {
		return strings.Compare(folderKey(a), folderKey(b))
	})
	return &Results{Run: whole, Judgement: verdict.Judge(whole), Folders: folders}, nil
}

func folderKey(r *result.Run) string {
	return fmt.Sprintf("%06d-%06d", r.Manifest.Shard, r.Manifest.Attempt)
}

// Attempt returns the newest attempt at any shard of the run, and when it
// started.
func (r *Results) Attempt() (int, time.Time) {
	var attempt int
	var start time.Time
	for _, f := range r.Folders {
		for _, m := range f.Manifests() {
			if m.Attempt > attempt || m.Attempt == attempt && m.Started.Before(start) {
				attempt, start = m.Attempt, m.Started
			}
		}
	}
	return attempt, start
}

// BuildID is the id of the build that the results make by themselves.
func (r *Results) BuildID() (string, error) {
	_, start := r.Attempt()
	return BuildID(start, r.Run.Manifest.RunID)
}

// Started is what becomes started.json, with the run's id and attempt as
// metadata. commit is that of what was tested; "" is the one that the run knows.
func (r *Results) Started(job *Job, commit string) *metadata.Started {
	attempt, start := r.Attempt()
	if commit == "" {
		commit = r.Run.Manifest.Source.Commit
	}
	s := NewStarted(job, start, commit)
	s.Metadata = metadata.Metadata{runKey: r.runID(), attemptKey: fmt.Sprint(attempt)}
	return s
}

// The metadata of a build that says whose it is.
const (
	runKey     = "run-id"
	attemptKey = "attempt"
)

// runID is the run's id, as metadata has it.
func (r *Results) runID() string { return result.Cut(r.Run.Manifest.RunID, maxMetadataValue) }

// NewStarted is the started.json of a build that starts now.
func NewStarted(job *Job, start time.Time, commit string) *metadata.Started {
	s := &metadata.Started{Timestamp: start.Unix()}
	if job.Type == Presubmit {
		s.Pull = fmt.Sprint(job.Pull)
	}
	metadata.SetVersion(s, nil, result.Cut(commit, maxMetadataValue), "")
	return s
}

// The results of a build in finished.json, as Prow has them.
const (
	success = "SUCCESS"
	failure = "FAILURE"
	aborted = "ABORTED"
)

// commitKey is the metadata that TestGrid takes as a column's version.
const commitKey = "Commit"

// Finished is what becomes finished.json: passed only where the run as a whole
// is ready. Further metadata gives way to the run's own, but for Commit. now
// stands in for the end of a run that was killed.
func (r *Results) Finished(further map[string]string, now time.Time) *metadata.Finished {
	code := r.Judgement.ExitCode()
	passed := code == verdict.ExitReady
	f := &metadata.Finished{Passed: &passed, Result: failure, Metadata: metadata.Metadata{}}
	switch code {
	case verdict.ExitReady:
		f.Result = success
	case verdict.ExitInterrupted:
		f.Result = aborted
	}
	end := r.Run.Manifest.Finished
	if end.IsZero() {
		end = now
	}
	f.Timestamp = new(end.Unix())
	all := r.written()
	maps.Copy(all, further)
	maps.Copy(all, report.Metadata(r.Run, r.Judgement))
	if commit := further[commitKey]; commit != "" {
		all[commitKey] = commit
	}
	for k, v := range all {
		if k != "" && v != "" {
			f.Metadata[k] = result.Cut(redact.String(v), maxMetadataValue)
		}
	}
	return f
}

// The limits of metadata, and of what is taken over from a metadata.json.
const (
	maxMetadataFile  = 1 << 20
	maxMetadata      = 100
	maxMetadataValue = 1 << 10
)

// written is what the folders' metadata.json say and all agree on: strings
// only, since TestGrid makes column headers of no others.
func (r *Results) written() map[string]string {
	all, differ := map[string]string{}, map[string]bool{}
	for _, f := range r.Folders {
		values, err := readMetadata(f.Dir)
		if err != nil {
			continue // the plan says that the file is left out
		}
		for k, v := range values {
			if old, ok := all[k]; ok && old != v {
				differ[k] = true
			}
			all[k] = v
		}
	}
	for k := range differ {
		delete(all, k)
	}
	return all
}

// readMetadata reads the strings of a folder's metadata.json.
func readMetadata(dir string) (map[string]string, error) {
	file, err := result.Open(dir, result.MetadataFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxMetadataFile+1))
	if err != nil {
		return nil, err
	}
	var values map[string]any
	switch err := json.Unmarshal(data, &values); {
	case len(data) > maxMetadataFile:
		return nil, fmt.Errorf("it is over %d bytes", maxMetadataFile)
	case err != nil:
		return nil, fmt.Errorf("it is not a JSON object: %w", err)
	case len(values) > maxMetadata:
		return nil, fmt.Errorf("it has over %d fields", maxMetadata)
	}
	out := map[string]string{}
	for k, v := range values {
		if s, ok := v.(string); ok && len(k)+len(s) <= maxMetadataValue {
			out[k] = s
		}
	}
	return out, nil
}

// folders are what becomes artifacts/<name>/ of a build.
func (r *Results) folders() ([]folder, error) {
	if r.Run == r.Folders[0] {
		files, err := report.JUnit(r.Judgement)
		return []folder{{name: folderName(r.Run, 1), dir: r.Run.Dir, junit: files}}, err
	}
	attempts := map[int]int{}
	for _, f := range r.Folders {
		attempts[f.Manifest.Shard]++
	}
	var out []folder
	for _, f := range r.Folders {
		out = append(out, folder{name: folderName(f, attempts[f.Manifest.Shard]), dir: f.Dir})
	}
	// JUnit is that of the whole: only there is a rule that sums up others, or
	// a test that a later attempt healed, what it is.
	for shard := 1; shard <= r.Run.Plan.Shards; shard++ {
		files, err := report.JUnit(ofShard(r.Judgement, shard))
		if err != nil {
			return nil, err
		}
		out = append(out, folder{name: shardName(shard), junit: files})
	}
	return out, nil
}

type folder struct {
	name  string
	dir   string // "" where there is nothing but JUnit
	junit []junit.File
}

func shardName(shard int) string { return fmt.Sprintf("shard-%d", shard) }

func folderName(r *result.Run, attempts int) string {
	switch {
	case r.Merged():
		return "merged"
	case attempts > 1:
		return fmt.Sprintf("%s-attempt-%d", shardName(r.Manifest.Shard), r.Manifest.Attempt)
	}
	return shardName(r.Manifest.Shard)
}

// ofShard is the part of a judgement for which a shard accounts.
func ofShard(j *verdict.Judgement, shard int) *verdict.Judgement {
	part := *j
	part.Cases = slices.DeleteFunc(slices.Clone(j.Cases), func(c verdict.CaseResult) bool { return c.Case.Shard != shard })
	part.Suites = slices.DeleteFunc(slices.Clone(j.Suites), func(s result.Suite) bool {
		return !strings.HasPrefix(s.Batch, shardName(shard)+"-")
	})
	return &part
}
