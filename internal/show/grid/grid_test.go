package grid

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	configpb "github.com/GoogleCloudPlatform/testgrid/pb/config"
	"github.com/GoogleCloudPlatform/testgrid/util/gcs"
	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
)

const junitXML = `<testsuites><testsuite name=""><testcase name="a" time="1.5"></testcase><testcase name="b"><failure message="m">boom</failure></testcase></testsuite></testsuites>`

// fill makes builds of a job, and returns their objects by name.
func fill(job string, builds int) map[string]string {
	objects := map[string]string{}
	for b := range builds {
		dir := fmt.Sprintf("%s/%d/", job, 1991000000000000000+b)
		start := time.Now().Add(time.Duration(b-builds) * time.Hour).Unix()
		objects[dir+"started.json"] = fmt.Sprintf(`{"timestamp": %d}`, start)
		objects[dir+"finished.json"] = fmt.Sprintf(`{"timestamp": %d, "passed": false, "metadata": {"Commit": "c%d"}}`, start+60, b)
		objects[dir+"artifacts/junit_core-network_01.xml"] = junitXML
	}
	return objects
}

func inMemory(objects map[string]string) *Memory {
	var m Memory
	for name, content := range objects {
		m.Put(Object{Name: name}, []byte(content))
	}
	return &m
}

func makeTab(t *testing.T, client gcs.Client, prefix string) Tab {
	t.Helper()
	p, err := Make(t.Context(), client, Standard(14, prefix), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return *p.Tabs()[0]
}

// A store is read as TestGrid's own client reads a bucket with the same
// objects.
func TestStoresAreReadAsABucket(t *testing.T) {
	objects := fill("logs/job", 4)
	objects["logs/job/latest-build.txt"] = "1"
	objects["logs/job/9/started.json"] = "{" // a short id, and broken
	objects["logs/job2/7/started.json"] = "{}"
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	dir := t.TempDir()
	for name, content := range objects {
		server.CreateObject(fakestorage.Object{ObjectAttrs: fakestorage.ObjectAttrs{BucketName: "b", Name: name}, Content: []byte(content)})
		write(t, filepath.Join(dir, filepath.FromSlash(name)), content)
	}
	if err := os.Mkdir(filepath.Join(dir, "logs", "job", "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	folder, err := openStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	want := makeTab(t, gcs.NewClient(server.Client()), "b/logs/job")
	if len(want.Columns) != 5 || len(want.Rows) != 4 {
		t.Fatalf("%d columns, %d rows", len(want.Columns), len(want.Rows))
	}
	for name, store := range map[string]Store{"memory": inMemory(objects), "folder": folder} {
		if got := makeTab(t, ClientOf(store), "b/logs/job"); !reflect.DeepEqual(want, got) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
		p, err := Make(t.Context(), ClientOf(store), Standard(14, "b/logs/job"), Options{Ahead: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := *p.Tabs()[0]; !reflect.DeepEqual(want, got) {
			t.Errorf("%s, read ahead:\n got %+v\nwant %+v", name, got, want)
		}
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// counting counts what is asked of a store at the same time.
type counting struct {
	Store
	now, most atomic.Int32
}

func (c *counting) Open(ctx context.Context, name string) (io.ReadCloser, Object, error) {
	defer c.now.Add(-1)
	for n := c.now.Add(1); ; {
		most := c.most.Load()
		if n <= most || c.most.CompareAndSwap(most, n) {
			break
		}
	}
	runtime.Gosched()
	return c.Store.Open(ctx, name)
}

// Builds that are read ahead, more of them than the window holds, are those that
// TestGrid reads, in whatever order it asks, and also when it stops early.
func TestReadingAhead(t *testing.T) {
	store := &counting{Store: inMemory(fill("logs/job", 3*aheadWindow))}
	want := makeTab(t, ClientOf(store.Store), "b/logs/job")
	p, err := Make(t.Context(), ClientOf(store), Standard(14, "b/logs/job"), Options{Ahead: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := *p.Tabs()[0]; !reflect.DeepEqual(want, got) {
		t.Errorf("%d columns of %d rows, want %d of %d", len(got.Columns), len(got.Rows), len(want.Columns), len(want.Rows))
	}
	if n := store.most.Load(); n > aheadWorkers+8 {
		t.Errorf("%d objects were asked for at a time", n)
	}
	builds := buildsOf(t.Context(), ClientOf(store), standardGroup("job", "b/logs/job", 14))
	client := Ahead(t.Context(), ClientOf(store), builds)
	slices.Reverse(builds) // not the order that was told
	for _, b := range builds {
		started, err := b.Started(t.Context(), client)
		if err != nil || started.Timestamp == 0 {
			t.Fatalf("%s: %+v, %v", b, started, err)
		}
		if info, err := b.PodInfo(t.Context(), client); err != nil || info != nil {
			t.Fatalf("%s: %+v, %v", b, info, err)
		}
	}
}

func TestFoldersAreNotLeft(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret.xml"), "secret")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "a")
	for _, link := range []struct{ from, to string }{
		{"file.xml", filepath.Join(outside, "secret.xml")}, {"dir", outside}, {"up.xml", "../" + filepath.Base(outside) + "/secret.xml"}, {"nowhere", "x"}, {"inside.xml", "a.txt"},
	} {
		if err := os.Symlink(link.to, filepath.Join(dir, link.from)); err != nil {
			t.Skip(err)
		}
	}
	f, err := openStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	objects, err := f.List(t.Context(), "", true)
	if err != nil || len(objects) != 1 {
		t.Errorf("listed: %+v", objects)
	}
	for _, name := range []string{"file.xml", "up.xml", "dir/secret.xml", "inside.xml", "../" + filepath.Base(outside) + "/secret.xml", "/etc/passwd", ""} {
		if r, _, err := f.Open(t.Context(), name); err == nil {
			r.Close()
			t.Errorf("%s can be opened", name)
		}
	}
	if _, _, err := f.Open(t.Context(), "nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
}

// Attributes are read up to the size up to which package bucket reads them. An
// object with others is read without.
func TestAttributesInFolders(t *testing.T) {
	dir := t.TempDir()
	const attrs = `{"user.metadata": {"link": "gs://b/c"}}`
	for name, beside := range map[string]string{"a.txt": attrs, "large.txt": attrs + strings.Repeat(" ", bucket.MaxAttrs), "not.txt": "x"} {
		write(t, filepath.Join(dir, name), "x")
		write(t, filepath.Join(dir, name+bucket.AttrsSuffix), beside)
	}
	f, err := openStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	objects, err := f.List(t.Context(), "", true)
	if err != nil || len(objects) != 3 || objects[0].Metadata["link"] == "" || objects[1].Metadata != nil || objects[2].Metadata != nil {
		t.Errorf("%+v, %v", objects, err)
	}
	if why := f.Skipped(); len(why) != 2 || why["large.txt.attrs"] != "it is over 1 MiB" || !strings.Contains(why["not.txt.attrs"], "not the JSON") {
		t.Errorf("skipped: %q", why)
	}
}

// What is stored compressed is read as what it was, and no bomb goes off.
func TestFoldersDecompress(t *testing.T) {
	zip := func(r io.Reader) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := io.Copy(z, r); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"a.xml": zip(strings.NewReader(junitXML)), "bomb.xml": zip(io.LimitReader(zeros{}, maxUnzipped+1)), "not.xml": "x"} {
		write(t, filepath.Join(dir, name), content)
		write(t, filepath.Join(dir, name+".attrs"), `{"user.content_encoding": "gzip"}`)
	}
	f, err := openStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, _, err := f.Open(t.Context(), "a.xml")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != junitXML {
		t.Errorf("%q, %v", got, err)
	}
	r.Close()
	if r, _, err = f.Open(t.Context(), "bomb.xml"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, errTooLarge) {
		t.Errorf("a bomb: %v", err)
	}
	r.Close()
	if _, _, err := f.Open(t.Context(), "not.xml"); err == nil || !strings.Contains(err.Error(), "stored with encoding gzip") {
		t.Errorf("what is not compressed: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestStateTakesTurns(t *testing.T) {
	var s state
	p, err := gcs.NewPath("gs://b/x")
	if err != nil {
		t.Fatal(err)
	}
	upload := func(cond *storage.Conditions) error {
		_, err := s.client().If(nil, cond).Upload(t.Context(), *p, []byte("1"), false, "")
		return err
	}
	if _, _, err := s.client().Open(t.Context(), *p); !errors.Is(err, storage.ErrObjectNotExist) {
		t.Errorf("what is not there: %v", err)
	}
	for _, step := range []struct {
		cond storage.Conditions
		ok   bool
	}{
		{storage.Conditions{GenerationMatch: 1}, false}, {storage.Conditions{DoesNotExist: true}, true}, {storage.Conditions{DoesNotExist: true}, false},
		{storage.Conditions{GenerationMatch: 1}, true}, {storage.Conditions{GenerationMatch: 1}, false}, {storage.Conditions{GenerationNotMatch: 2}, false},
	} {
		if err := upload(&step.cond); (err == nil) != step.ok || err != nil && !gcs.IsPreconditionFailed(err) {
			t.Errorf("%+v: %v", step.cond, err)
		}
	}
}

func TestFind(t *testing.T) {
	objects := fill("logs/one", 1)
	objects["logs/two/17/started.json"] = "{}"
	objects["logs/none/readme.txt"] = ""
	objects["pr-logs/pull/org_repo/1/three/17/started.json"] = "{}"
	store := inMemory(objects)
	store.Put(Object{Name: "pr-logs/directory/three/17.txt", Metadata: map[string]string{"link": "gs://b/pr-logs/pull/org_repo/1/three/17"}}, nil)
	for prefix, want := range map[string][]string{
		"b":                         {"b/logs/one", "b/logs/two", "b/pr-logs/directory/three"},
		"b/logs":                    {"b/logs/one", "b/logs/two"},
		"b/logs/one/":               {"b/logs/one"},
		"b/pr-logs":                 {"b/pr-logs/directory/three"},
		"b/pr-logs/directory/three": {"b/pr-logs/directory/three"},
	} {
		if got, err := Find(t.Context(), ClientOf(store), prefix); err != nil || !slices.Equal(got, want) {
			t.Errorf("in %s: %v, %v", prefix, got, err)
		}
	}
	if _, err := Find(t.Context(), ClientOf(store), "b/nothing"); !errors.Is(err, errNoBuilds) {
		t.Errorf("nowhere: %v", err)
	}
}

// Wherever a folder lies and whatever it is called, its builds are found, and
// lead to where they are.
func TestFoldersOfAnyName(t *testing.T) {
	for _, c := range []struct{ dir, open, job string }{
		{"x/logs/job", "x", "job"},
		{"x/logs/job", "x/logs", "job"},
		{"x/logs/job", "x/logs/job", "job"},
		{"a b#c%41/logs/job", "a b#c%41", "job"},
		{"somewhere/job", "somewhere/job", "job"},
		{"somewhere/job", "somewhere", "job"},
		{"a b#c%41d", "a b#c%41d", "a-b-c-41d"},
	} {
		top := t.TempDir()
		for name, content := range fill(c.dir, 1) {
			write(t, filepath.Join(top, filepath.FromSlash(name)), content)
		}
		source, err := Open(t.Context(), filepath.Join(top, filepath.FromSlash(c.open)), bucket.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.open, err)
			continue
		}
		defer source.Close()
		found, err := Find(t.Context(), source.Client, source.Prefix)
		if err != nil || len(found) != 1 {
			t.Errorf("%s: %v, %v", c.open, found, err)
			continue
		}
		tab := makeTab(t, source.Client, found[0])
		if len(tab.Columns) != 1 || len(tab.Rows) != 3 || !slices.ContainsFunc(tab.Rows, func(r Row) bool { return r.Name == c.job+".Overall" }) {
			t.Errorf("%s: %+v", c.open, tab)
		}
		_, object, _ := strings.Cut(found[0], "/")
		if got, want := source.URL(object+"/"+tab.Columns[0].Build), filepath.Join(top, filepath.FromSlash(c.dir), tab.Columns[0].Build); got != want {
			t.Errorf("%s: the build is at %s, want %s", c.open, got, want)
		}
	}
}

func TestTabsShowSomeRows(t *testing.T) {
	cfg := Standard(14, "b/logs/job")
	tab := cfg.Dashboards[0].DashboardTab[0]
	tab.BaseOptions = "include-filter-by-regex=%5Ecore&exclude-filter-by-regex=b$"
	tab.OpenTestTemplate = &configpb.LinkTemplate{Url: "https://prow/view/gs/<gcs_prefix>/<changelist>"}
	p, err := Make(t.Context(), ClientOf(inMemory(fill("logs/job", 2))), cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := p.Tabs()[0]
	if len(got.Rows) != 1 || got.Rows[0].Name != "core-network: a" || got.Status != "PASS" {
		t.Errorf("%s: %+v", got.Status, got.Rows)
	}
	if u := got.Columns[0].URL; u != "https://prow/view/gs/b/logs/job/1991000000000000001" {
		t.Errorf("the build is at %s", u)
	}
}

// A group may join the builds of several jobs; each column leads to its own.
func TestGroupsOfSeveralJobs(t *testing.T) {
	objects := fill("logs/one", 2)
	for name, content := range fill("logs/two", 1) {
		objects[strings.Replace(name, "1991000000000000000", "1992000000000000000", 1)] = content
	}
	cfg := Standard(14, "b/logs/one")
	cfg.TestGroups[0].GcsPrefix = "b/logs/one,b/logs/two"
	cfg.Dashboards[0].DashboardTab[0].OpenTestTemplate = &configpb.LinkTemplate{Url: "https://x/<gcs_prefix>/<changelist>"}
	p, err := Make(t.Context(), ClientOf(inMemory(objects)), cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var urls []string
	for _, c := range p.Tabs()[0].Columns {
		urls = append(urls, c.URL)
	}
	slices.Sort(urls)
	want := []string{"https://x/b/logs/one/1991000000000000000", "https://x/b/logs/one/1991000000000000001", "https://x/b/logs/two/1992000000000000000"}
	if !slices.Equal(urls, want) {
		t.Errorf("builds at %v", urls)
	}
}

// Nothing of TestGrid's brings the process down when it is done, nor when it
// is told to stop.
func TestManyPreviews(t *testing.T) {
	client := ClientOf(inMemory(fill("logs/job", 1)))
	for range 200 {
		if _, err := Make(t.Context(), client, Standard(14, "b/logs/job"), Options{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Make(ctx, client, Standard(14, "b/logs/job"), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

func TestReadConfig(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), "test_groups:\n- name: job\n  gcs_prefix: b/logs/job\ndashboards:\n- name: dash\n  dashboard_tab:\n  - name: tab\n    test_group_name: job\n")
	write(t, filepath.Join(dir, "default.yaml"), "default_test_group: {}\n")
	cfg, err := readConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	if g := cfg.TestGroups[0]; g.DaysOfResults != defaultDays || g.NumColumnsRecent != 10 || !g.UseKubernetesClient { //nolint:staticcheck // deprecated, and still needed
		t.Errorf("without the defaults: %+v", g)
	}
	if _, err := Only(cfg, "jib"); err == nil || !strings.Contains(err.Error(), "it has: job") {
		t.Errorf("a group that is not there: %v", err)
	}
	if _, err := readConfig(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no .yaml file") {
		t.Errorf("an empty folder: %v", err)
	}
}
