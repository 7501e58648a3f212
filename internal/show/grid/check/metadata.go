package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/GoogleCloudPlatform/testgrid/metadata"
	"github.com/GoogleCloudPlatform/testgrid/pkg/updater"

	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// fileError explains why TestGrid cannot read one of a build's JSON files.
func (c *checker) fileError(ctx context.Context, b *build, name string, cause error) {
	f := Finding{Severity: Error, Rule: "json", Object: b.at() + name}
	if errors.Is(cause, io.EOF) {
		f.What = "it is empty, so TestGrid fails the row Overall: malformed artifacts"
		f.Fix = "write the whole object at once"
		c.add(f)
		return
	}
	f.What = fmt.Sprintf("TestGrid cannot read it, and shows none of this build: %s", c.told(cause))
	f.Fix = "write it as TestGrid's metadata package has it"
	var offset int64 = -1
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(cause, &syntax):
		offset = syntax.Offset
	case errors.As(cause, &kind):
		// The files are structs embedded in others.
		offset, f.Field = kind.Offset, strings.TrimPrefix(strings.TrimPrefix(kind.Field, "Started."), "Finished.")
		if f.Field == "timestamp" {
			f.Fix = "write seconds since 1970 as an integer, without fraction or quotes"
		}
	case errors.Is(cause, io.ErrUnexpectedEOF):
		f.Fix = "it is cut off; upload it whole"
	}
	if p, err := b.Path.ResolveReference(&url.URL{Path: name}); err == nil && offset >= 0 {
		if data, err := c.content(ctx, *p, 1<<20); err == nil {
			f.Line = 1 + bytes.Count(data[:min(int64(len(data)), offset)], []byte("\n"))
		}
	}
	c.add(f)
}

func (c *checker) startedJSON(ctx context.Context, b *build) {
	at := b.at() + "started.json"
	started, err := b.Started(ctx, c.client)
	if err != nil {
		c.fileError(ctx, b, "started.json", err)
		return
	}
	b.started = *started
	when := time.Unix(started.Timestamp, 0)
	switch {
	case started.Pending:
		c.add(Finding{Severity: Error, Rule: "started-missing", Object: at, What: "there is none: TestGrid takes the build for one from 1970, which is too old to process", Fix: "upload started.json first of all"})
	case started.Timestamp <= 0:
		c.add(Finding{Severity: Error, Rule: "started-timestamp", Object: at, Field: "timestamp", What: "there is no start: TestGrid takes the build for one from 1970, which is too old to process", Fix: "write when it started, in seconds since 1970"})
	case started.Timestamp > 1e11:
		c.add(Finding{Severity: Error, Rule: "started-timestamp", Object: at, Field: "timestamp", What: fmt.Sprintf("%d is in the year %d: it looks like milliseconds", started.Timestamp, when.UTC().Year()), Fix: "write seconds since 1970"})
	case when.After(c.Now.Add(5 * time.Minute)):
		c.add(Finding{Severity: Warning, Rule: "started-timestamp", Object: at, Field: "timestamp", What: fmt.Sprintf("it starts in the future: %s", when.UTC().Format(time.RFC3339)), Fix: "set the clock of the machine that ran it"})
	}
}

func (c *checker) finishedJSON(ctx context.Context, b *build) {
	at := b.at() + "finished.json"
	finished, err := b.Finished(ctx, c.client)
	if err != nil {
		c.fileError(ctx, b, "finished.json", err)
		return
	}
	start := time.Unix(b.started.Timestamp, 0)
	age := c.Now.Sub(start)
	field := func(s Severity, rule, name, what, fix string) {
		c.add(Finding{Severity: s, Rule: rule, Object: at, Field: name, What: what, Fix: fix})
	}
	if finished.Running || finished.Timestamp == nil || *finished.Timestamp <= 0 {
		what := "there is none"
		if !finished.Running {
			what = "it has no timestamp"
		}
		switch {
		case b.started.Timestamp > 0 && age > finishWithin:
			field(Error, "never-finished", "", what+": the build started over 24 hours ago, so TestGrid fails it with icon T", "upload finished.json, last of all, with timestamp and passed")
		case !finished.Running:
			field(Error, "finished-timestamp", "timestamp", what+", so the build shows as running", "write when it ended, in seconds since 1970")
		default:
			field(Note, "running", "", what+" yet: the build shows as running", "")
		}
		return
	}
	end := time.Unix(*finished.Timestamp, 0)
	switch {
	case *finished.Timestamp > 1e11:
		field(Error, "finished-timestamp", "timestamp", fmt.Sprintf("%d looks like milliseconds", *finished.Timestamp), "write seconds since 1970")
	case b.started.Timestamp > 0 && end.Before(start):
		field(Warning, "finished-timestamp", "timestamp", "it ended before it started, and its duration is negative", "set the clock of the machine that ran it")
	}
	switch {
	case finished.Passed == nil && finished.Result == "":
		field(Error, "passed-missing", "passed", "neither passed nor result is there: TestGrid takes the build for failed", "write passed: true or false")
	case finished.Passed == nil:
		field(Warning, "passed-missing", "passed", fmt.Sprintf("it is missing: TestGrid goes by result %q, and marks the build with icon E", finished.Result), "write passed: true or false")
	case finished.Result != "" && *finished.Passed != (finished.Result == "SUCCESS"):
		field(Warning, "passed-contradicts", "result", fmt.Sprintf("passed is %t and result is %q: TestGrid goes by passed, Deck by result", *finished.Passed, finished.Result), "let both say the same: SUCCESS, FAILURE or ABORTED")
	case finished.Result != "" && !slices.Contains([]string{"SUCCESS", "FAILURE", "ABORTED", "ERROR", "UNSTABLE"}, finished.Result):
		field(Warning, "result", "result", fmt.Sprintf("Deck does not know the result %q", finished.Result), "write SUCCESS, FAILURE or ABORTED")
	}
	c.ended++
	texts := finished.Metadata.Strings()
	for _, h := range c.group.GetColumnHeader() {
		key := h.GetConfigurationValue()
		if _, isText := texts[key]; isText || key == "" {
			continue
		}
		if _, there := finished.Metadata[key]; there {
			field(Error, "metadata-type", "metadata."+key, "the column header shows \"missing\": TestGrid takes strings only", "write the value in quotes")
		} else if key != commitHeader || metadata.Version(b.started.Started, finished.Finished) == metadata.Missing {
			c.missing[key] = append(c.missing[key], b.id)
		}
	}
	if emails, found := finished.Metadata.MultiString(updater.EmailListKey); found && len(emails) == 0 {
		field(Warning, "metadata-type", "metadata."+updater.EmailListKey, "it is not a list of strings, so nobody of it is alerted", "write a list of addresses")
	}
}

// commitHeader is the column header for which TestGrid has other sources than
// the metadata of its name.
const commitHeader = "Commit"

// headers tells which values of column headers builds do not have.
func (c *checker) headers(place string) {
	for _, h := range c.group.GetColumnHeader() {
		key := h.GetConfigurationValue()
		lacking := c.missing[key]
		if len(lacking) == 0 {
			continue
		}
		what := fmt.Sprintf("%d of %d builds that have ended lack it, such as %s", len(lacking), c.ended, lacking[0])
		switch {
		case c.ended == 1:
			what = "the only build that has ended lacks it"
		case len(lacking) == c.ended:
			what = fmt.Sprintf("none of the %d builds that have ended has it", c.ended)
		}
		fix := "write it into finished.json's metadata; under Prow, into $ARTIFACTS/metadata.json"
		if key == commitHeader {
			fix = "publish with --commit; or write it into finished.json's metadata, or as repo-commit into started.json"
		}
		c.add(Finding{Severity: Note, Rule: "metadata-missing", Object: place, Field: "metadata." + key, What: what + ": the column header shows \"missing\"", Fix: fix})
	}
}

func (c *checker) podInfo(ctx context.Context, b *build) {
	info, err := b.PodInfo(ctx, c.client)
	if err != nil {
		c.fileError(ctx, b, "podinfo.json", err)
		return
	}
	if info == nil && !c.group.GetDisableProwjobAnalysis() {
		c.add(Finding{Severity: Warning, Rule: "podinfo", Object: b.at() + "podinfo.json", What: "there is none: the row Pod shows as running for a while, then as unknown", Fix: "outside of Prow, set disable_prowjob_analysis: true on the test group"})
	}
}

// copies tells which builds in files were written so late that TestGrid would not
// have read them, if they had been uploaded then.
func (c *checker) copies(place string) {
	if len(c.copied) == 0 {
		return
	}
	c.add(Finding{Severity: Warning, Rule: "finished-late", Object: place, What: fmt.Sprintf("the files of %s, such as %s, were written over 72 hours after the start: uploaded then, TestGrid would not read them any more; times of files need not be those of their upload", text.Count(len(c.copied), "build"), c.copied[0]), Fix: "nothing, if these are copies; else publish sooner, or as an attempt of its own ('publish --attempt')"})
}

// slack is within what uploads are as good as at once.
const slack = time.Second

// late tells what arrived when TestGrid no longer looked, or in the wrong
// order.
func (c *checker) late(b *build) {
	finished, ok := b.objects["finished.json"]
	if !ok || finished.Updated.IsZero() || b.started.Timestamp <= 0 {
		return
	}
	severity := Error
	doubt := ""
	if !c.Source.Kept {
		severity, doubt = Warning, "; times of files need not be those of their upload"
	}
	start := time.Unix(b.started.Timestamp, 0)
	after := finished.Updated.Sub(start)
	switch {
	case after > runningFor && !c.Source.Kept:
		c.copied = append(c.copied, b.id)
		return // nor does the order of a copy's files say anything
	case after > runningFor:
		c.add(Finding{Severity: severity, Rule: "finished-late", Object: b.at() + "finished.json", What: fmt.Sprintf("it was uploaded %s after the start: TestGrid reads running builds again for 72 hours only", after.Round(time.Minute)), Fix: "publish sooner, or as an attempt of its own ('publish --attempt')"})
	}
	for _, name := range b.names {
		o := b.objects[name]
		if after := o.Updated.Sub(finished.Updated); after <= slack || !c.isJUnit(name) && name != "started.json" {
			continue
		}
		f := Finding{Severity: severity, Rule: "after-finished", Object: b.at() + name, Fix: "upload finished.json last"}
		if o.Updated.Sub(start) > rereadFor {
			f.What = fmt.Sprintf("it was uploaded after finished.json, and %s after the start: TestGrid had read the build by then, and reads it again only within 20 minutes of its start%s", o.Updated.Sub(start).Round(time.Minute), doubt)
		} else {
			f.Severity = Warning
			f.What = "it was uploaded after finished.json; only that TestGrid reads young builds again saves it" + doubt
		}
		c.add(f)
	}
}

// order compares the builds of a job with each other.
func (c *checker) order() {
	seen := map[string]*build{}
	var newer *build             // with a larger id, and first in the bucket among those
	var started *build           // with a larger id, and the earliest start among those
	for _, b := range c.builds { // the largest id first
		if first, again := seen[b.id]; again {
			c.add(Finding{Severity: Error, Rule: "build-twice", Object: b.at(), What: fmt.Sprintf("there is another build of this id, %s: TestGrid makes one column of both", first.at()), Fix: "give each attempt an id of its own"})
			continue
		}
		seen[b.id] = b
		if !isNumber(b.id) {
			continue
		}
		if newer != nil && b.first.Sub(newer.first) > slack {
			f := Finding{Severity: Error, Rule: "id-order", Object: b.at(), What: fmt.Sprintf("it appeared %s after build %s, whose id is larger: once TestGrid knows that one, it does not list this one any more", b.first.Sub(newer.first).Round(time.Second), newer.id), Fix: "let ids grow with time ('publish' makes such), and started.json be uploaded at the start ('publish start')"}
			if b.first.Sub(newer.first) < rereadFor || !c.Source.Kept {
				f.Severity = Warning
			}
			c.add(f)
		}
		if started != nil && b.started.Timestamp > started.started.Timestamp {
			c.add(Finding{Severity: Warning, Rule: "start-order", Object: b.at() + "started.json", Field: "timestamp", What: fmt.Sprintf("it started after build %s, whose id is larger: columns are sorted by start, but listed by id", started.id), Fix: "let ids grow with the time of the start"})
		}
		if !b.first.IsZero() && (newer == nil || b.first.Before(newer.first)) {
			newer = b
		}
		if b.started.Timestamp > 0 && (started == nil || b.started.Timestamp < started.started.Timestamp) {
			started = b
		}
	}
}
