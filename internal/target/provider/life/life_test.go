package life_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/ledger"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/life"
)

// world is a provider whose clusters are entries of a map.
type world struct {
	clusters map[string]provider.Found
	foreign  map[string]string
	failDown error
	downs    int
	ups      int
}

func newWorld() *world {
	return &world{clusters: map[string]provider.Found{}, foreign: map[string]string{}}
}

func (w *world) Name() string { return "world" }

func (w *world) Plan(_ context.Context, r provider.Request) (*provider.Plan, error) {
	return &provider.Plan{Provider: "world", Request: r, Steps: []string{"all"}, Objects: []string{"a moon", "a tide"}, Teardown: time.Minute}, r.Validate(10)
}

func (w *world) Render(*provider.Plan) ([]byte, error) { return nil, nil }

func (w *world) Up(_ context.Context, p *provider.Plan, j provider.Journal) (*provider.Cluster, error) {
	w.ups++
	c := provider.Cluster{Name: p.Name, Provider: "world", State: provider.Running}
	return &c, j.Step("all", func() error {
		w.clusters[p.Name] = provider.Found{Cluster: c, Owner: p.Owner, Run: p.Run, Expires: p.Expires}
		return nil
	})
}

func (w *world) Down(_ context.Context, e *provider.Entry) error {
	w.downs++
	if w.failDown == nil {
		delete(w.clusters, e.Plan.Name)
	}
	return w.failDown
}

func (w *world) List(_ context.Context, names ...string) ([]provider.Found, error) {
	var all []provider.Found
	for name, f := range w.clusters {
		if len(names) == 0 || slices.Contains(names, name) {
			all = append(all, f)
		}
	}
	return all, nil
}

func (w *world) Foreign(_ context.Context, name string) (string, error) { return w.foreign[name], nil }

func (w *world) Extend(_ context.Context, e *provider.Entry, expires time.Time) error {
	f := w.clusters[e.Plan.Name]
	f.Expires = expires
	w.clusters[e.Plan.Name] = f
	return nil
}

func (w *world) Logs(context.Context, *provider.Entry, string) ([]provider.Missing, error) {
	return nil, nil
}

// site is a world with a ledger.
type site struct {
	*life.Clusters
	world *world
	said  *strings.Builder
}

func newSite(t *testing.T) *site {
	w, said := newWorld(), &strings.Builder{}
	return &site{&life.Clusters{
		Ledger: &ledger.Ledger{Dir: t.TempDir()}, Providers: []provider.Provider{w}, Progress: said,
	}, w, said}
}

func (s *site) up(t *testing.T, r provider.Request) (*provider.Cluster, error) {
	t.Helper()
	plan, err := s.Plan(t.Context(), "world", r)
	if err != nil {
		return nil, err
	}
	return s.Up(t.Context(), plan, life.UpOptions{})
}

// small is a request for a cluster that expires in an hour.
func small() provider.Request {
	r := provider.DefaultRequest()
	r.Name, r.Owner, r.Run, r.Expires = "small", "octo/app", "8123-1-2", time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	return r
}

func wantRefused(t *testing.T, err error, parts ...string) {
	t.Helper()
	refused := (*verdict.UsageError)(nil)
	if !errors.As(err, &refused) {
		t.Errorf("error %v, want it refused", err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
}

// Whatever a kill leaves of the ledger, the reaper finds the cluster by its tags.
func TestReapWithALedgerTruncatedAtEveryByte(t *testing.T) {
	s := newSite(t)
	if _, err := s.up(t, small()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.Ledger.Dir, "small.json")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	was := s.world.clusters["small"]
	for n := range len(whole) - 1 { // the last byte is a line break
		if err := os.WriteFile(file, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		s.world.clusters["small"] = was
		s.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
		if _, err := s.List(t.Context()); err == nil || !strings.Contains(err.Error(), file) {
			t.Fatalf("at byte %d listing says %v, want the file named", n, err)
		}
		expired, _ := s.Expired(t.Context(), nil, 0)
		if len(expired) != 1 {
			t.Fatalf("at byte %d these have expired: %+v", n, expired)
		}
		if err := s.Reap(t.Context(), &expired[0]); err != nil {
			t.Fatalf("at byte %d: %v", n, err)
		}
		if len(s.world.clusters) > 0 {
			t.Fatalf("at byte %d the cluster was left", n)
		}
	}
}

func TestWhatHasNotExpiredStays(t *testing.T) {
	s := newSite(t)
	if _, err := s.up(t, small()); err != nil {
		t.Fatal(err)
	}
	s.world.clusters["eternal"] = provider.Found{Cluster: provider.Cluster{Name: "eternal", Provider: "world", State: provider.Running}}
	for ahead, want := range map[time.Duration]int{0: 0, 59 * time.Minute: 0, 2 * time.Hour: 1} {
		s.Now = func() time.Time { return time.Now().Add(ahead) }
		if expired, err := s.Expired(t.Context(), nil, 0); err != nil || len(expired) != want {
			t.Errorf("in %s these have expired: %+v, %v; want %d", ahead, expired, err, want)
		}
	}
	if expired, _ := s.Expired(t.Context(), nil, 2*time.Hour); len(expired) > 0 {
		t.Errorf("two hours ago these had expired: %+v", expired)
	}
	if expired, _ := s.Expired(t.Context(), []string{"other"}, 0); len(expired) > 0 {
		t.Errorf("of another provider these have expired: %+v", expired)
	}
}

// Whichever of ledger and tags says that a cluster has expired, it has.
func TestExpiredByTagLedgerOrEither(t *testing.T) {
	past, future := time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	for _, c := range []struct{ tag, ledger time.Time }{{past, future}, {future, past}, {past, past}} {
		s := newSite(t)
		r := small()
		if _, err := s.up(t, r); err != nil {
			t.Fatal(err)
		}
		f := s.world.clusters["small"]
		f.Expires = c.tag
		s.world.clusters["small"] = f
		changeEntry(t, s, func(e *provider.Entry) { e.Plan.Expires = c.ledger })
		expired, err := s.Expired(t.Context(), nil, 0)
		if err != nil || len(expired) != 1 {
			t.Errorf("tag %s, ledger %s: expired are %+v, %v", c.tag, c.ledger, expired, err)
		}
	}
}

func changeEntry(t *testing.T, s *site, change func(*provider.Entry)) {
	t.Helper()
	h, err := s.Ledger.TryLock("small")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Unlock()
	e, err := h.Read()
	if err != nil {
		t.Fatal(err)
	}
	change(e)
	if err := h.Write(e); err != nil {
		t.Fatal(err)
	}
}

func TestAnEntryWithoutAClusterBecomesGone(t *testing.T) {
	s := newSite(t)
	if _, err := s.up(t, small()); err != nil {
		t.Fatal(err)
	}
	delete(s.world.clusters, "small")
	s.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	s.Sweep(t.Context())
	if e, err := s.Ledger.Read("small"); err != nil || e.Life != provider.Removed {
		t.Errorf("the ledger says %+v, %v", e, err)
	}
}

func TestWhatIsNotOursIsLeftAlone(t *testing.T) {
	s := newSite(t)
	s.world.foreign["small"] = "three containers"
	_, err := s.up(t, small())
	wantRefused(t, err, "three containers", "--name")
	wantRefused(t, s.Down(t.Context(), "small"), "three containers", "leaves it alone")
	if s.world.ups+s.world.downs > 0 {
		t.Errorf("%d ups, %d downs", s.world.ups, s.world.downs)
	}
}

type elsewhere struct{ *world }

func (elsewhere) Name() string { return "elsewhere" }

// What is in the way at one provider does not hide what another has made.
func TestOursIsFoundBesideWhatIsForeign(t *testing.T) {
	s := newSite(t)
	other := elsewhere{newWorld()}
	other.foreign["small"] = "a folder"
	s.world.clusters["small"] = provider.Found{Cluster: provider.Cluster{Name: "small", Provider: "world", State: provider.Running}}
	s.Providers = []provider.Provider{other, s.world}
	if err := s.Down(t.Context(), "small"); err != nil || len(s.world.clusters) > 0 || other.downs > 0 {
		t.Errorf("down: %v, left %v, %d downs elsewhere", err, s.world.clusters, other.downs)
	}
}

func TestARunningClusterThatTheLedgerDoesNotKnowIsNotTakenOver(t *testing.T) {
	s := newSite(t)
	s.world.clusters["small"] = provider.Found{Cluster: provider.Cluster{Name: "small", Provider: "world", State: provider.Running}}
	_, err := s.up(t, small())
	wantRefused(t, err, "does not know of it", "op-readiness cluster down small")
	if err := s.Down(t.Context(), "small"); err != nil || len(s.world.clusters) > 0 {
		t.Errorf("down: %v, left %v", err, s.world.clusters)
	}
}

func TestWhatIsLeftIsNamed(t *testing.T) {
	s := newSite(t)
	if _, err := s.up(t, small()); err != nil {
		t.Fatal(err)
	}
	s.world.failDown = errors.New("gravity")
	err := s.Down(t.Context(), "small")
	left := (*life.LeftError)(nil)
	if !errors.As(err, &left) {
		t.Fatalf("error %v, want it to say that something is left", err)
	}
	for _, part := range []string{"small", "a moon; a tide", "gravity", "op-readiness cluster down small"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
	if e, _ := s.Ledger.Read("small"); e == nil || e.Life != provider.Deleting {
		t.Errorf("the ledger says %+v, want it being deleted", e)
	}
	s.world.failDown = nil
	if err := s.Down(t.Context(), "small"); err != nil {
		t.Error(err)
	}
}

// A provider that says that all is gone is not believed.
func TestDownLooksWhetherItIsGone(t *testing.T) {
	s := newSite(t)
	if _, err := s.up(t, small()); err != nil {
		t.Fatal(err)
	}
	lazy := &life.Clusters{Ledger: s.Ledger, Providers: []provider.Provider{lazyDown{s.world}}}
	if err := lazy.Down(t.Context(), "small"); err == nil || !strings.Contains(err.Error(), "still there") {
		t.Errorf("error %v, want it to say that the cluster is still there", err)
	}
}

type lazyDown struct{ *world }

func (lazyDown) Down(context.Context, *provider.Entry) error { return nil }

func TestNothingIsMadeWithoutALedger(t *testing.T) {
	s := newSite(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Ledger.Dir = filepath.Join(file, "ledger")
	if _, err := s.up(t, small()); err == nil || !strings.Contains(err.Error(), "--ledger") {
		t.Errorf("error %v, want one that says what to do", err)
	}
	if s.world.ups > 0 {
		t.Error("a cluster was made that no ledger knows")
	}
}

func TestWrongRequests(t *testing.T) {
	s := newSite(t)
	_, err := s.Plan(t.Context(), "nowhere", small())
	wantRefused(t, err, `unknown provider "nowhere": use world`)
	past := small()
	past.Expires = time.Now().Add(-time.Second)
	_, err = s.Plan(t.Context(), "world", past)
	wantRefused(t, err, "gone at once")
	many := small()
	many.Name, many.LinuxNodes = "Big", 11
	_, err = s.Plan(t.Context(), "world", many)
	wantRefused(t, err, `"Big"`, "11 Linux nodes")
}

func TestDownByRun(t *testing.T) {
	s := newSite(t)
	for name, run := range map[string]string{"one": "7-1-1", "two": "7-1-1", "kept": "7-1-1", "other": "8-1-1"} {
		r := small()
		r.Name, r.Run = name, run
		if _, err := s.up(t, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Keep(t.Context(), "kept", time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := s.DownRun(t.Context(), "7-1-1"); err != nil {
		t.Fatal(err)
	}
	if left := slices.Sorted(maps.Keys(s.world.clusters)); !slices.Equal(left, []string{"kept", "other"}) {
		t.Errorf("left are %v", left)
	}
}

func TestReapLeavesWhatSomebodyWorksOn(t *testing.T) {
	s := newSite(t)
	if _, err := s.up(t, small()); err != nil {
		t.Fatal(err)
	}
	s.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	expired, err := s.Expired(t.Context(), nil, 0)
	if err != nil || len(expired) != 1 {
		t.Fatalf("expired are %+v, %v", expired, err)
	}
	h, err := s.Ledger.TryLock("small")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Unlock()
	if err := s.Reap(t.Context(), &expired[0]); err != nil || s.world.downs > 0 {
		t.Errorf("%v, %d downs", err, s.world.downs)
	}
}

// The ledger says what is about to be done before it is done.
func TestTheLedgerIsAhead(t *testing.T) {
	s := newSite(t)
	var seen []string
	look := func(at string) {
		data, err := os.ReadFile(filepath.Join(s.Ledger.Dir, "small.json"))
		var e provider.Entry
		if err == nil {
			err = json.Unmarshal(data, &e)
		}
		var steps []string
		for _, step := range e.Steps {
			steps = append(steps, fmt.Sprintf("%s %t", step.Name, !step.Ended.IsZero()))
		}
		seen = append(seen, fmt.Sprintf("%s: %s %v %v", at, e.Life, steps, err))
	}
	s.Providers = []provider.Provider{looking{s.world, look}}
	if _, err := s.up(t, small()); err != nil {
		t.Fatal(err)
	}
	look("after")
	if err := s.Down(t.Context(), "small"); err != nil {
		t.Fatal(err)
	}
	look("at the end")
	want := []string{
		"up: creating [] <nil>",
		"step: creating [all false] <nil>",
		"after: up [all true] <nil>",
		"down: deleting [all true] <nil>",
		"at the end: gone [all true] <nil>",
	}
	if strings.Join(seen, "\n") != strings.Join(want, "\n") {
		t.Errorf("the ledger said\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
}

// looking is a world in which somebody looks at the ledger.
type looking struct {
	*world
	look func(at string)
}

func (l looking) Up(ctx context.Context, p *provider.Plan, j provider.Journal) (*provider.Cluster, error) {
	l.look("up")
	if err := j.Step("all", func() error { l.look("step"); return nil }); err != nil {
		return nil, err
	}
	return l.world.Up(ctx, p, quiet{j})
}

func (l looking) Down(ctx context.Context, e *provider.Entry) error {
	l.look("down")
	return l.world.Down(ctx, e)
}

type quiet struct{ provider.Journal }

func (quiet) Step(_ string, act func() error) error { return act() }
