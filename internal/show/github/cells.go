package github

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/intake"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/tempdir"
)

// What is read of the artifacts of one run, in bytes.
const (
	maxArchive  = 256 << 20 // of one, as it is downloaded
	maxUnpacked = 512 << 20 // of all together
	// What is read into memory, of all together, grows there: an empty test of two
	// bytes to a kilobyte. A plan of the whole standard has less than 100 kB.
	maxDescribed = 8 << 20   // plan.json and run.json
	maxEvents    = 128 << 20 // results.jsonl
)

// budget is what may still be read into memory.
type budget struct{ described, events int64 }

// spend takes a results folder's files off. It returns an error when they are too
// many bytes.
func (b *budget) spend(dir string) error {
	for _, file := range []struct {
		name string
		left *int64
		of   int64
	}{{result.PlanFile, &b.described, maxDescribed}, {result.ManifestFile, &b.described, maxDescribed}, {result.EventsFile, &b.events, maxEvents}} {
		info, err := os.Stat(filepath.Join(dir, file.name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if *file.left -= info.Size(); *file.left < 0 {
			return verdict.UsageErrorf("%s has %d bytes, and of all results of a run at most %d are read", file.name, info.Size(), file.of)
		}
	}
	return nil
}

// onlyCell is what the reusable workflow calls results that it was given no name
// for.
const onlyCell = "readiness"

// Cells downloads the artifacts of a run, and judges the results in them: a cell
// each, beside the base of its name. Notes say what of them is not shown, or not
// of this attempt. Whoever opened the pull request may have made them up, so what
// is not about the subject, or is more than is read of a run, is a
// [verdict.UsageError].
func (w *WorkflowRun) Cells(ctx context.Context, client *API, artifacts []Artifact, about Subject, bases map[string]*verdict.Judgement) (cells []Cell, notes []string, err error) {
	temp, err := tempdir.New()
	if err != nil {
		return nil, nil, err
	}
	defer temp.RemoveAll()
	limits := intake.Limits{Archive: maxArchive, File: maxUnpacked / int64(len(artifacts)), Total: maxUnpacked / int64(len(artifacts))}
	left := &budget{maxDescribed, maxEvents}
	var expired error
	for i, a := range artifacts {
		fmt.Fprintf(client.narration, "Reading %s (%d bytes)\n", a.Name, a.Size)
		results, err := w.take(ctx, client, a, filepath.Join(temp.Path, fmt.Sprint(i)), limits, left)
		if errors.Is(err, errExpired) {
			expired = err
			notes = append(notes, fmt.Sprintf("%s: the results have expired and are not shown", a.Of))
			fmt.Fprintf(client.narration, "%v\n", err)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if err := about.Check(results, a.Name); err != nil {
			return nil, nil, verdict.UsageErrorf("%w", err)
		}
		if a.Attempt != w.Attempt {
			notes = append(notes, fmt.Sprintf("%s: the results are of attempt %d of the workflow run, and attempt %d left none", a.Of, a.Attempt, w.Attempt))
		}
		name, base := a.Of, bases[a.Of]
		if len(artifacts) == 1 {
			if name == onlyCell {
				name = ""
			}
			if base == nil {
				base = bases[""]
			}
		}
		cells = append(cells, Cell{Name: name, Run: results, Judgement: verdict.Judge(results), Base: base})
	}
	if len(cells) == 0 {
		return nil, nil, fmt.Errorf("%w: run the workflow again", expired)
	}
	return cells, notes, nil
}

// take downloads an artifact, and reads the one results folder in it.
func (w *WorkflowRun) take(ctx context.Context, client *API, a Artifact, dir string, limits intake.Limits, left *budget) (*result.Run, error) {
	if a.Expired {
		return nil, fmt.Errorf("%s: %w on %s", a.Name, errExpired, a.Expires.UTC().Format("2006-01-02"))
	}
	archive, err := os.Create(dir + ".zip")
	if err != nil {
		return nil, err
	}
	defer os.Remove(archive.Name())
	defer archive.Close()
	if err := client.Download(ctx, w, a, archive, limits.Archive); err != nil {
		return nil, err
	}
	info, err := archive.Stat()
	if err != nil {
		return nil, err
	}
	if _, err := intake.Zip(ctx, archive, info.Size(), a.Name, dir, limits); err != nil {
		if errors.Is(err, intake.ErrRefused) || errors.Is(err, intake.ErrNoResults) {
			return nil, verdict.UsageErrorf("%w", err)
		}
		return nil, err
	}
	found, err := result.Find([]string{dir})
	if err != nil {
		return nil, verdict.UsageErrorf("%s: %w", a.Name, err)
	}
	if len(found) != 1 {
		return nil, verdict.UsageErrorf("%s holds %d results folders, and merged results are one: upload what op-readiness merge wrote", a.Name, len(found))
	}
	if err := left.spend(found[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	results, err := result.Load(found[0])
	if err != nil {
		return nil, verdict.UsageErrorf("%s: %s", a.Name, strings.ReplaceAll(err.Error(), found[0], ""))
	}
	return results, nil
}
