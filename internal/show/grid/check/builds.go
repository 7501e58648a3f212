package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"github.com/GoogleCloudPlatform/testgrid/config"
	configpb "github.com/GoogleCloudPlatform/testgrid/pb/config"
	"github.com/GoogleCloudPlatform/testgrid/util/gcs"
	"google.golang.org/api/iterator"

	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// Rules of TestGrid's updater about time.
const (
	// rereadFor is for how long after its start a build is read again
	// (updater.GCS, reprocess).
	rereadFor = 20 * time.Minute
	// runningFor is for how long a build that shows as running is
	// (truncateRunning).
	runningFor = 72 * time.Hour
	// finishWithin is when a build that has not finished fails
	// (gcsResult.deadline).
	finishWithin = 24 * time.Hour
	// maxGrid is the size of a grid, compressed, above which TestGrid removes
	// parts of it (byteCeiling).
	maxGrid = 2_000_000
)

// Options say what to check.
type Options struct {
	// Source is where builds are read from.
	Source *grid.Source
	// Config says which test groups there are. It must be valid.
	Config *configpb.Configuration
	// Now is the time.
	Now time.Time
	// Progress is told of each build before it is read. May be nil.
	Progress func(group string, i, of int)
}

// Builds checks the builds of all test groups. An error is about reading
// them at all; what is wrong with them is in the report.
func Builds(ctx context.Context, o Options) (*Report, error) {
	r := &Report{Source: o.Source.Name}
	for _, group := range o.Config.GetTestGroups() {
		g := Group{Name: group.GetName(), Prefix: grid.PrefixOf(group)}
		whole := true
		for _, prefix := range strings.Split(g.Prefix, ",") {
			c := &checker{Options: o, report: r, group: group, client: o.Source.Client, missing: map[string][]string{}}
			n, listed, err := c.job(ctx, strings.TrimSpace(prefix))
			if err != nil {
				return nil, fmt.Errorf("test group %s: %w", group.GetName(), err)
			}
			g.Builds += n
			whole = whole && listed
		}
		if whole {
			only, err := grid.Only(o.Config, group.GetName())
			if err != nil {
				return nil, err
			}
			if err := r.columns(ctx, o, only, &g); err != nil {
				return nil, err
			}
		}
		r.Groups = append(r.Groups, g)
	}
	r.noBuilds()
	jobs := map[string]string{}
	for _, group := range o.Config.GetTestGroups() {
		for _, prefix := range strings.Split(grid.PrefixOf(group), ",") {
			prefix = strings.Trim(strings.TrimSpace(prefix), "/")
			name := config.Normalize(path.Base(prefix))
			if other, ok := jobs[name]; ok && path.Base(other) != path.Base(prefix) {
				r.add(Finding{Severity: Warning, Rule: "job-names", Object: "gs://" + prefix + "/", What: fmt.Sprintf("TestGrid takes its name for that of gs://%s/: they differ in case or punctuation alone, so test groups cannot have both names", other), Fix: "rename one of the jobs"})
				continue
			}
			jobs[name] = prefix
		}
	}
	skipped := o.Source.Skipped()
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		r.add(Finding{Severity: Warning, Rule: "skipped", Object: name, What: "not read: " + skipped[name], Fix: "put what is meant in its place, or move it away"})
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Object, f.What = o.Source.Shown(f.Object), o.Source.Shown(f.What)
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		g.Prefix = o.Source.Shown("gs://" + g.Prefix)
	}
	r.finish()
	return r, nil
}

// columns asks TestGrid's updater what it makes of a group.
func (r *Report) columns(ctx context.Context, o Options, cfg *configpb.Configuration, g *Group) error {
	preview, err := grid.Make(ctx, o.Source.Client, cfg, grid.Options{Ahead: o.Source.Kept})
	if err != nil {
		return err
	}
	tabs := preview.Tabs()
	if len(tabs) == 0 {
		return nil
	}
	t := tabs[0]
	if t.Unwritten != "" {
		r.add(Finding{Severity: Error, Rule: "grid-unwritten", Object: g.Name, What: "TestGrid's updater cannot write the grid, so this group stays as it was, without any newer build: " + o.Source.Told(t.Unwritten), Fix: "fix or remove the objects that it cannot read, which are shown as errors here"})
	}
	g.Columns, g.Rows, g.Bytes = len(t.Columns), len(t.Rows), t.Bytes
	for _, row := range t.Rows {
		if row.Name == "Truncated" {
			r.add(Finding{Severity: Error, Rule: "grid-too-large", Object: g.Name, What: "TestGrid has removed messages, rows or old builds, because a grid may have 2 MB, compressed", Fix: "lower days_of_results, or publish fewer rows"})
		}
		if row.Name == "Overall" {
			for i, c := range row.Cells {
				if c.Message == "Build is too old to process" {
					r.add(Finding{Severity: Note, Rule: "too-old", Object: g.Name + "/" + t.Columns[i].Build, What: fmt.Sprintf("%q: it started more than days_of_results ago, or has no start", c.Message), Fix: "nothing, unless it is not that old: see its started.json"})
				}
			}
		}
	}
	if t.Bytes > maxGrid*9/10 && t.Bytes <= maxGrid {
		r.add(Finding{Severity: Warning, Rule: "grid-too-large", Object: g.Name, What: fmt.Sprintf("the grid has %d bytes; above 2,000,000 TestGrid removes parts of it", t.Bytes), Fix: "lower days_of_results, or publish fewer rows"})
	}
	return nil
}

// checker checks the builds of one job.
type checker struct {
	Options
	report *Report
	group  *configpb.TestGroup
	client gcs.Client
	builds []*build
	// ended is how many builds have ended, and missing which of them lack the
	// value of a column header.
	ended   int
	missing map[string][]string
	// copied are builds whose files are of long after their start.
	copied []string
}

// build is one build of a job, as it lies in the bucket.
type build struct {
	gcs.Build
	id      string
	objects map[string]*storage.ObjectAttrs // by name below the build
	names   []string                        // sorted
	first   time.Time                       // of uploads; zero when not known
	started gcs.Started
}

func (c *checker) add(f Finding) { c.report.add(f) }

// job checks one job. It returns how many builds TestGrid lists, and whether
// it can list them at all.
func (c *checker) job(ctx context.Context, prefix string) (n int, listed bool, err error) {
	place, err := gcs.NewPath("gs://" + strings.TrimSuffix(prefix, "/") + "/")
	if err != nil {
		c.add(Finding{Severity: Error, Rule: "prefix", Object: c.group.GetName(), Field: "gcs_prefix", What: fmt.Sprintf("TestGrid cannot read the prefix: %s", c.told(err)), Fix: "write it as bucket/folder"})
		return 0, false, nil
	}
	if err := c.listing(ctx, *place); err != nil {
		return 0, false, err
	}
	found, err := gcs.ListBuilds(ctx, c.client, *place, nil)
	if err != nil {
		c.add(Finding{Severity: Error, Rule: "listing", Object: addressOf(*place), What: fmt.Sprintf("TestGrid cannot list the builds, so it shows none of this group: %s", c.told(err)), Fix: "fix the object that it names"})
		return 0, false, nil
	}
	if len(found) == 0 {
		c.report.empty = append(c.report.empty, addressOf(*place))
	}
	if c.Source.Kept {
		reading, stop := context.WithCancel(ctx)
		defer stop()
		c.client = grid.Ahead(reading, c.client, found)
	}
	old := 0
	for i, f := range found { // the newest first
		if old == oldInRow {
			c.add(Finding{Severity: Note, Rule: "not-checked", Object: addressOf(*place), What: fmt.Sprintf("%s not checked: those before them started more than days_of_results (%d) ago", text.Count(len(found)-i, "older build")+is(len(found)-i), c.group.GetDaysOfResults()), Fix: "give --days to check them"})
			break
		}
		if c.Progress != nil {
			c.Progress(c.group.GetName(), i+1, len(found))
		}
		b := &build{Build: f, id: f.Build()}
		if err := c.read(ctx, b); err != nil {
			return 0, false, err
		}
		c.builds = append(c.builds, b)
		if c.old(b) {
			old++
		} else {
			old = 0
		}
	}
	c.order()
	c.headers(addressOf(*place))
	c.copies(addressOf(*place))
	return len(found), true, nil
}

// noBuilds tells which jobs have no builds.
func (r *Report) noBuilds() {
	slices.Sort(r.empty)
	r.empty = slices.Compact(r.empty)
	if len(r.empty) == 0 {
		return
	}
	f := Finding{Severity: Warning, Rule: "no-builds", Object: r.empty[0], What: "there are no builds; TestGrid shows an empty grid", Fix: "publish one, or fix the group's gcs_prefix"}
	if more := r.empty[1:]; len(more) > 0 {
		f.What += "; nor are there any in " + text.Few(more, 5)
	}
	r.add(f)
}

// addressOf is an object in a bucket, or the bucket itself, by its own name: that
// of a path is escaped.
func addressOf(p gcs.Path) string { return "gs://" + p.Bucket() + "/" + p.Object() }

// at is the folder of a build.
func (b *build) at() string { return addressOf(b.Path) }

// told is an error of TestGrid's in the words of the source.
func (c *checker) told(err error) string { return c.Source.Told(err.Error()) }

// oldInRow is after how many builds in a row that are too old the others are
// not read.
const oldInRow = 5

// old reports whether a build is too old for TestGrid.
func (c *checker) old(b *build) bool {
	days := time.Duration(c.group.GetDaysOfResults()) * 24 * time.Hour
	return b.started.Timestamp > 0 && c.Now.Sub(time.Unix(b.started.Timestamp, 0)) > days
}

// objectsOf lists objects.
func objectsOf(ctx context.Context, client gcs.Lister, at gcs.Path, delimiter string) ([]*storage.ObjectAttrs, error) {
	var all []*storage.ObjectAttrs
	for it := client.Objects(ctx, at, delimiter, ""); ; {
		o, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", at, err)
		}
		all = append(all, o)
	}
}

// listing checks what lies directly in a job's folder.
func (c *checker) listing(ctx context.Context, place gcs.Path) error {
	objects, err := objectsOf(ctx, c.client, place, "/")
	if err != nil {
		return err
	}
	short := 0
	var shortest string
	for _, o := range objects {
		name := path.Base(o.Name + o.Prefix)
		at := "gs://" + place.Bucket() + "/" + o.Name + o.Prefix
		id, isAlias := strings.CutSuffix(name, ".txt")
		link := linkOf(o)
		switch {
		case o.Prefix != "" && !isNumber(name):
			c.add(Finding{Severity: Error, Rule: "build-id", Object: at, What: "TestGrid takes every folder here for a build, and this one is not a number: it becomes a column, sorts anywhere, and Deck's job history leaves it out", Fix: "move it away: nothing but builds lies in a job's folder"})
		case o.Prefix != "":
			if len(name) < 19 {
				short, shortest = short+1, name
			}
		case name == "latest-build.txt" || name == "clone-records.json" || name == ".lock":
			if name == "latest-build.txt" {
				c.latest(ctx, at, objects)
			}
		case link != "":
			c.alias(ctx, o, at, link)
			if isAlias && len(id) < 19 {
				short, shortest = short+1, id
			}
		case isAlias && isNumber(id):
			c.add(Finding{Severity: Error, Rule: "alias-without-link", Object: at, What: "TestGrid reads where an alias leads from the object's metadata, not from its body; without it the build is ignored", Fix: "store it with the metadata link (x-goog-meta-link): gs://BUCKET/pr-logs/pull/…"})
		default:
			c.add(Finding{Severity: Note, Rule: "ignored", Object: at, What: "TestGrid ignores this object: it is neither a build nor an alias of one", Fix: "move it away, if it was meant to be seen"})
		}
	}
	if short > 0 {
		c.add(Finding{Severity: Warning, Rule: "build-id-short", Object: addressOf(place), What: fmt.Sprintf("%s ids below 1e18, such as %s: TestGrid lists all builds of the job in every cycle", text.Count(short, "build")+has(short), shortest), Fix: "use 19 digits, as Prow and 'publish' do"})
	}
	return nil
}

func has(n int) string {
	if n == 1 {
		return " has"
	}
	return " have"
}

func linkOf(o *storage.ObjectAttrs) string {
	for _, key := range []string{"x-goog-meta-link", "link"} {
		if link := o.Metadata[key]; link != "" {
			return link
		}
	}
	return ""
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// alias checks an object that leads to a build.
func (c *checker) alias(ctx context.Context, o *storage.ObjectAttrs, at, link string) {
	u, err := url.Parse(strings.TrimSpace(link))
	if err != nil {
		return // ListBuilds says it
	}
	var target gcs.Path
	if err := target.SetURL(u); err != nil {
		return
	}
	p, err := c.Source.Path(at)
	if err != nil {
		return
	}
	body, err := c.content(ctx, p, 1<<16)
	if err == nil && !c.same(string(body), link) {
		c.add(Finding{Severity: Warning, Rule: "alias-body", Object: at, What: fmt.Sprintf("its body is %q and its metadata %q: Deck goes by the body, TestGrid by the metadata", body[:min(len(body), 200)], link), Fix: "store the same in both"})
	}
	id := strings.TrimSuffix(path.Base(o.Name), ".txt")
	if path.Base(strings.TrimSuffix(u.Path, "/")) != id {
		c.add(Finding{Severity: Error, Rule: "alias-elsewhere", Object: at, What: fmt.Sprintf("it leads to %s, whose id is not %s", link, id), Fix: "give the alias the name of its build"})
	}
}

// same reports whether two addresses lead to one folder.
func (c *checker) same(a, b string) bool {
	to := func(address string) string {
		p, err := c.Source.Path(address)
		if err != nil {
			return strings.TrimSpace(address)
		}
		return strings.TrimRight(addressOf(p), "/")
	}
	return to(a) == to(b)
}

// latest checks the object by which Deck finds the newest build.
func (c *checker) latest(ctx context.Context, at string, objects []*storage.ObjectAttrs) {
	p, err := c.Source.Path(at)
	if err != nil {
		return
	}
	body, err := c.content(ctx, p, 1<<10)
	if err != nil {
		return
	}
	newest := ""
	for _, o := range objects {
		id := strings.TrimSuffix(path.Base(o.Name+o.Prefix), ".txt")
		if isNumber(id) && (len(id) > len(newest) || len(id) == len(newest) && id > newest) {
			newest = id
		}
	}
	if got := strings.TrimSpace(string(body)); newest != "" && got != newest {
		c.add(Finding{Severity: Warning, Rule: "latest-build", Object: at, What: fmt.Sprintf("it says %q, and the newest build is %s: Deck's job history begins at the one it says", got, newest), Fix: "write the newest id into it"})
	}
}

// content reads an object, and no more than limit bytes of it.
func (c *checker) content(ctx context.Context, p gcs.Path, limit int64) ([]byte, error) {
	r, _, err := c.client.Open(ctx, p)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, limit))
}

// read checks one build.
func (c *checker) read(ctx context.Context, b *build) error {
	objects, err := objectsOf(ctx, c.client, b.Path, "")
	if err != nil {
		return err
	}
	b.objects = map[string]*storage.ObjectAttrs{}
	base := b.Path.Object()
	for _, o := range objects {
		name := strings.TrimPrefix(o.Name, base)
		b.objects[name] = o
		b.names = append(b.names, name)
		if !o.Updated.IsZero() && (b.first.IsZero() || o.Updated.Before(b.first)) {
			b.first = o.Updated
		}
	}
	slices.Sort(b.names)
	if len(b.names) == 0 {
		c.add(Finding{Severity: Error, Rule: "empty-build", Object: b.at(), What: "there is nothing in this build", Fix: "publish it again, or remove what leads to it"})
		return nil
	}
	c.startedJSON(ctx, b)
	if c.old(b) {
		return nil // TestGrid reads no more of it
	}
	c.finishedJSON(ctx, b)
	c.podInfo(ctx, b)
	if err := c.junit(ctx, b); err != nil {
		return err
	}
	c.late(b)
	return nil
}
