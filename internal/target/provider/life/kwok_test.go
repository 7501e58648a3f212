//go:build unix

package life_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/process"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/ledger"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/life"
)

// TestMain lets this test binary stand in for another op-readiness, one that makes a
// cluster and is killed at a step.
func TestMain(m *testing.M) {
	if at := os.Getenv("LIFE_TEST_KILL"); at != "" {
		fmt.Println(upAndDie(at, os.Getenv("LIFE_TEST_DIR")))
		os.Exit(1) // it should not have come to this
	}
	os.Exit(m.Run())
}

// upAndDie makes a cluster with a provider that kills this process before or after a
// step, as in "before nodes".
func upAndDie(at, dir string) error {
	store, err := realStore()
	if err != nil {
		return err
	}
	c := clustersIn(dir, store)
	c.Providers = []provider.Provider{suicidal{c.Providers[0], at}}
	plan, err := c.Plan(context.Background(), kwok.ProviderName, request())
	if err != nil {
		return err
	}
	_, err = c.Up(context.Background(), plan, life.UpOptions{})
	return err
}

// suicidal is a provider whose process dies at a step of Up.
type suicidal struct {
	provider.Provider
	at string
}

func (s suicidal) Up(ctx context.Context, p *provider.Plan, j provider.Journal) (*provider.Cluster, error) {
	made, err := s.Provider.Up(ctx, p, dying{j, s.at})
	if s.at == "after all" {
		die()
	}
	return made, err
}

type dying struct {
	provider.Journal
	at string
}

func (d dying) Step(name string, act func() error) error {
	return d.Journal.Step(name, func() error {
		if d.at == "before "+name {
			die()
		}
		err := act()
		if d.at == "after "+name {
			die()
		}
		return err
	})
}

func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

func realStore() (*binaries.Store, error) {
	dir, err := binaries.DefaultDir(os.Getenv)
	return &binaries.Store{Dir: dir, Progress: os.Stderr}, err
}

// clustersIn are clusters whose folders and ledger are in dir.
func clustersIn(dir string, store *binaries.Store) *life.Clusters {
	return &life.Clusters{
		Ledger:    &ledger.Ledger{Dir: filepath.Join(dir, "ledger")},
		Providers: []provider.Provider{&kwok.Provider{Binaries: store, Dir: filepath.Join(dir, "clusters")}},
	}
}

// request is one for a small cluster.
func request() provider.Request {
	r := provider.DefaultRequest()
	r.Name, r.Owner, r.Run = "small", "octo/app", "8123-1-2"
	r.LinuxNodes, r.WindowsNodes = 1, 1
	r.Expires = time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	return r
}

// bed is a place for real clusters, where nothing may be left at the end of a test.
type bed struct {
	*life.Clusters
	dir string
	log *strings.Builder
}

func newBed(t *testing.T) *bed {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes a cluster")
	}
	store, err := realStore()
	if err != nil {
		t.Fatal(err)
	}
	missing, err := store.Missing(t.Context(), binaries.Pinned, kwok.Needs()...)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) > 0 {
		t.Skipf("not in the cache: %v: run 'make binaries'", missing)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{clustersIn(dir, store), dir, &strings.Builder{}}
	b.Progress = b.log
	t.Cleanup(func() {
		all, err := b.List(context.Background())
		for _, k := range all {
			err = errors.Join(err, b.Down(context.Background(), k.Name))
		}
		if err != nil {
			t.Error(err)
		}
		b.empty(t)
		if t.Failed() {
			t.Log(b.log)
		}
	})
	return b
}

// up makes the cluster of r.
func (b *bed) up(t *testing.T, r provider.Request, o life.UpOptions) (*provider.Cluster, error) {
	t.Helper()
	plan, err := b.Plan(t.Context(), kwok.ProviderName, r)
	if err != nil {
		t.Fatal(err)
	}
	return b.Up(t.Context(), plan, o)
}

func (b *bed) mustUp(t *testing.T, r provider.Request, o life.UpOptions) *provider.Cluster {
	t.Helper()
	made, err := b.up(t, r, o)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// empty checks that nothing is left of any cluster.
func (b *bed) empty(t *testing.T) {
	t.Helper()
	if left, _ := os.ReadDir(filepath.Join(b.dir, "clusters")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	if left := b.processes(t); len(left) > 0 {
		t.Errorf("processes left behind:\n%s", strings.Join(left, "\n"))
	}
}

// processes returns those that have the clusters' folder in their arguments.
func (b *bed) processes(t *testing.T) []string {
	t.Helper()
	all, err := process.List()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, p := range all {
		if strings.Contains(p.Command, filepath.Join(b.dir, "clusters")+"/") {
			found = append(found, fmt.Sprintf("%d %s", p.PID, p.Command))
		}
	}
	return found
}

// only returns the one cluster that is listed.
func (b *bed) only(t *testing.T) life.Known {
	t.Helper()
	all, err := b.List(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("listed %+v, %v; want one cluster", all, err)
	}
	return all[0]
}

// pid is the process id of a component of a cluster.
func (b *bed) pid(t *testing.T, name, component string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "clusters", name, "kwok", "clusters", name, "pids", component+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func (b *bed) ledgerFile(name string) string {
	return filepath.Join(b.Ledger.Dir, name+".json")
}

// A process that makes a cluster is killed before and after every step. What it began
// is listed, found by tags and ledger alone when it expires, and removed.
func TestKillAtEveryStep(t *testing.T) {
	first := newBed(t)
	plan, err := first.Plan(t.Context(), kwok.ProviderName, request())
	if err != nil {
		t.Fatal(err)
	}
	var moments []string
	for _, step := range plan.Steps {
		moments = append(moments, "before "+step, "after "+step)
	}
	later := func() time.Time { return time.Now().Add(2 * time.Hour) }
	reap := func(t *testing.T, b *bed) {
		b.Now = later
		expired, _ := b.Expired(t.Context(), nil, 0)
		for i := range expired {
			if err := b.Reap(t.Context(), &expired[i]); err != nil {
				t.Error(err)
			}
		}
	}
	ways := []struct {
		name   string
		remove func(t *testing.T, b *bed)
	}{
		{"down", func(t *testing.T, b *bed) {
			if err := b.Down(t.Context(), "small"); err != nil {
				t.Error(err)
			}
		}},
		{"down by run", func(t *testing.T, b *bed) {
			if err := b.DownRun(t.Context(), "8123-1-2"); err != nil {
				t.Error(err)
			}
		}},
		{"reap", reap},
		{"reap without the ledger", func(t *testing.T, b *bed) {
			if err := os.RemoveAll(b.Ledger.Dir); err != nil {
				t.Fatal(err)
			}
			reap(t, b)
		}},
		{"reap with a newer ledger", func(t *testing.T, b *bed) {
			newer := []byte(`{"schema": 2, "plan": {"name": "small"}, "more": true}`)
			if err := os.WriteFile(b.ledgerFile("small"), newer, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := b.Down(t.Context(), "small"); !errors.Is(err, ledger.ErrNewer) {
				t.Errorf("down says %v, want it refused", err)
			}
			reap(t, b)
			if left, _ := os.ReadFile(b.ledgerFile("small")); string(left) != string(newer) {
				t.Errorf("the newer ledger became %s", left)
			}
			if err := os.Remove(b.ledgerFile("small")); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for i, moment := range append(moments, "after all") {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			way := ways[i%len(ways)]
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "LIFE_TEST_KILL="+moment, "LIFE_TEST_DIR="+b.dir)
			said, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() == 1 || err == nil {
				t.Fatalf("it was not killed: %v\n%s", err, said)
			}
			k := b.only(t)
			if k.Name != "small" || k.State == provider.Running && k.Life == provider.Up || k.Life != provider.Creating || k.Step == "" && moment != "before folder" {
				t.Errorf("listed %+v", k)
			}
			b.foundByTagsAlone(t, moment != "before folder", later)
			t.Log("removed by", way.name)
			way.remove(t, b)
			b.empty(t)
			if all, _ := b.List(t.Context()); len(all) > 0 && way.name != "reap with a newer ledger" {
				t.Errorf("listed %+v", all)
			}
		})
	}
}

// foundByTagsAlone checks that the reaper would find the cluster without its ledger.
func (b *bed) foundByTagsAlone(t *testing.T, exists bool, later func() time.Time) {
	t.Helper()
	alone := clustersIn(b.dir, nil)
	alone.Ledger, alone.Now = &ledger.Ledger{Dir: t.TempDir()}, later
	expired, err := alone.Expired(t.Context(), nil, 0)
	if err != nil || (len(expired) == 1) != exists {
		t.Errorf("by their tags alone these have expired: %+v, %v", expired, err)
	}
}

func TestLifeOfACluster(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	r := request()
	made := b.mustUp(t, r, life.UpOptions{})
	if made.State != provider.Running || made.Name != "small" {
		t.Errorf("made %+v", made)
	}
	if k := b.only(t); k.Life != provider.Up || !k.Tagged || k.Owner != "octo/app" || k.Run != "8123-1-2" || !k.Expires.Equal(r.Expires) {
		t.Errorf("listed %+v", k)
	}
	if info, err := os.Stat(b.ledgerFile("small")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the ledger's entry: %v %v, want mode 0600", info, err)
	}

	// Again: the very same processes.
	server := b.pid(t, "small", "kube-apiserver")
	b.mustUp(t, r, life.UpOptions{})
	if again := b.pid(t, "small", "kube-apiserver"); again != server {
		t.Errorf("the second Up made another API server: %s, was %s", again, server)
	}

	// Another shape is refused and nothing changes.
	other := r
	other.WindowsNodes, other.WindowsVersion, other.Set = 3, "ltsc2019", map[string]string{kwok.BindAddress: "0.0.0.0"}
	_, err := b.up(t, other, life.UpOptions{})
	refused := (*verdict.UsageError)(nil)
	if !errors.As(err, &refused) {
		t.Fatalf("another shape: %v", err)
	}
	for _, part := range []string{
		"Windows nodes 1 instead of 3", "ltsc2022 instead of ltsc2019", "bind-address its default instead of 0.0.0.0",
		"op-readiness cluster down small",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
	if again := b.pid(t, "small", "kube-apiserver"); again != server {
		t.Errorf("the refused Up changed the API server: %s, was %s", again, server)
	}

	// A dead API server: listed as broken, healed by Up.
	b.kill(t, "small/kwok/clusters/small/bin/kube-apiserver")
	if k := b.only(t); k.State != provider.Broken || !strings.Contains(k.Problem, "kube-apiserver") {
		t.Errorf("listed %+v, want broken for want of kube-apiserver", k)
	}
	if healed := b.mustUp(t, r, life.UpOptions{}); healed.State != provider.Running {
		t.Errorf("healed is %+v", healed)
	}

	// All dead, as after a reboot: it may get another shape.
	b.kill(t, "small/")
	if k := b.only(t); k.State != provider.Stopped {
		t.Errorf("listed %+v, want stopped", k)
	}
	b.mustUp(t, other, life.UpOptions{})

	for range 2 { // the second time there is nothing left to do
		if err := b.Down(t.Context(), "small"); err != nil {
			t.Fatal(err)
		}
		b.empty(t)
	}
	if all, err := b.List(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("listed %v, %v after Down", all, err)
	}

	// The ledger remembers for a week.
	b.Sweep(t.Context())
	if e, err := b.Ledger.Read("small"); err != nil || e == nil || e.Life != provider.Removed {
		t.Errorf("the ledger says %+v, %v", e, err)
	}
	b.Now = func() time.Time { return time.Now().Add(8 * 24 * time.Hour) }
	b.Sweep(t.Context())
	if e, err := b.Ledger.Read("small"); err != nil || e != nil {
		t.Errorf("after a week the ledger says %+v, %v", e, err)
	}
}

// kill kills the processes of a cluster that have part in their arguments.
func (b *bed) kill(t *testing.T, part string) {
	t.Helper()
	for _, line := range b.processes(t) {
		var id int
		if _, err := fmt.Sscan(line, &id); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(line, part) {
			continue
		}
		if err := process.End(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTwoUpsAtOnceMakeOneCluster(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var group sync.WaitGroup
	for range 2 {
		second := clustersIn(b.dir, b.Providers[0].(*kwok.Provider).Binaries.(*binaries.Store))
		group.Go(func() {
			plan, err := second.Plan(t.Context(), kwok.ProviderName, request())
			if err != nil {
				t.Error(err)
				return
			}
			if made, err := second.Up(t.Context(), plan, life.UpOptions{}); err != nil || made.State != provider.Running {
				t.Errorf("%+v, %v", made, err)
			}
		})
	}
	group.Wait()
	if running := b.processes(t); len(running) != 5 {
		t.Errorf("processes:\n%s\nwant 5", strings.Join(running, "\n"))
	}
}

func TestDownWaitsForUp(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	began := make(chan struct{})
	going := &life.Clusters{Ledger: b.Ledger, Providers: []provider.Provider{telling{b.Providers[0], began}}}
	plan, err := b.Plan(t.Context(), kwok.ProviderName, request())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := going.Up(t.Context(), plan, life.UpOptions{})
		done <- err
	}()
	<-began
	if k := b.only(t); k.State != provider.Starting {
		t.Errorf("listed %+v, want it starting", k)
	}
	if err := b.Down(t.Context(), "small"); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the up: %v", err)
	}
	if !strings.Contains(b.log.String(), "waiting for another op-readiness") {
		t.Errorf("said %s", b.log)
	}
	b.empty(t)
}

// telling is a provider that says when it has begun.
type telling struct {
	provider.Provider
	began chan struct{}
}

func (p telling) Up(ctx context.Context, plan *provider.Plan, j provider.Journal) (*provider.Cluster, error) {
	close(p.began)
	return p.Provider.Up(ctx, plan, j)
}

func TestInterruptedUp(t *testing.T) {
	for _, step := range []string{"control-plane", "nodes"} {
		t.Run("leaves nothing at "+step, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			ctx, cancel := context.WithCancel(t.Context())
			b.Providers = []provider.Provider{cancelling{b.Providers[0], step, cancel}}
			plan, err := b.Plan(ctx, kwok.ProviderName, request())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.Up(ctx, plan, life.UpOptions{}); !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v, want context.Canceled", err)
			}
			b.empty(t)
		})
	}
	t.Run("is kept for a while where that was asked", func(t *testing.T) {
		t.Parallel()
		b := newBed(t)
		ctx, cancel := context.WithCancel(t.Context())
		b.Providers = []provider.Provider{cancelling{b.Providers[0], "nodes", cancel}}
		plan, err := b.Plan(ctx, kwok.ProviderName, request())
		if err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		if _, err := b.Up(ctx, plan, life.UpOptions{KeepOnFailure: 4 * time.Hour}); err == nil {
			t.Fatal("no error")
		}
		k := b.only(t)
		if left := k.Expires.Sub(before); k.State == provider.Running || left < 4*time.Hour-time.Second || left > 5*time.Hour {
			t.Errorf("listed %+v, want it half made and kept for 4h", k)
		}
		if !strings.Contains(b.log.String(), "remove it: op-readiness cluster down small") {
			t.Errorf("said %s", b.log)
		}
		// By its tags alone, too.
		if err := os.RemoveAll(b.Ledger.Dir); err != nil {
			t.Fatal(err)
		}
		if again := b.only(t); !again.Expires.Equal(k.Expires) {
			t.Errorf("by its tags it expires %s, want %s", again.Expires, k.Expires)
		}
	})
}

// cancelling is a provider whose context ends when a step begins.
type cancelling struct {
	provider.Provider
	step   string
	cancel context.CancelFunc
}

func (p cancelling) Up(ctx context.Context, plan *provider.Plan, j provider.Journal) (*provider.Cluster, error) {
	return p.Provider.Up(ctx, plan, cancellingJournal{j, p})
}

type cancellingJournal struct {
	provider.Journal
	p cancelling
}

func (j cancellingJournal) Step(name string, act func() error) error {
	return j.Journal.Step(name, func() error {
		if name == j.p.step {
			j.p.cancel()
		}
		return act()
	})
}

func TestKubeconfigOfTheUserKeepsWhatIsInIt(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	file := filepath.Join(b.dir, "sub", "config")
	theirs := clientcmdapi.NewConfig()
	theirs.Clusters["mine"] = &clientcmdapi.Cluster{Server: "https://mine.example"}
	theirs.Contexts["mine"] = &clientcmdapi.Context{Cluster: "mine"}
	theirs.CurrentContext = "mine"
	if err := clientcmd.WriteToFile(*theirs, file); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(b.dir, "new")
	for range 2 {
		for _, path := range []string{file, made} {
			c := b.mustUp(t, request(), life.UpOptions{Kubeconfig: path})
			if c.Kubeconfig != path {
				t.Errorf("kubeconfig %s, want %s", c.Kubeconfig, path)
			}
			got, err := clientcmd.LoadFromFile(path)
			if err != nil || got.CurrentContext != "kwok-small" || got.Clusters["kwok-small"] == nil || got.AuthInfos["kwok-small"] == nil {
				t.Errorf("%s is %+v, %v", path, got, err)
			}
		}
	}
	if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the new kubeconfig: %v %v, want mode 0600", info, err)
	}
	if err := b.Down(t.Context(), "small"); err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Clusters) != 1 || got.Clusters["mine"] == nil || got.CurrentContext != "mine" {
		t.Errorf("left is %+v, want what was there before", got)
	}
	if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the kubeconfig that Up made is still there: %v", err)
	}
}
