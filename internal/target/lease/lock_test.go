package lease_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/lease"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

const (
	duration = 40 * time.Second
	interval = 10 * time.Second
	poll     = 2 * time.Second
)

var (
	asIs       = lease.Group{Phase: specs.Parallel}
	steered    = lease.Group{Phase: specs.Parallel, Conditions: result.RunConditions{Steer: specs.Windows}}
	serial     = lease.Group{Phase: specs.Serial}
	disruptive = lease.Group{Phase: specs.Disruptive}
)

// clock stands still until it is stepped.
type clock struct {
	mu       sync.Mutex
	now      time.Time
	sleepers []*sleeper
	changed  *sync.Cond
}

type sleeper struct {
	asked time.Duration
	until time.Time
	woken chan struct{}
}

func newClock(now time.Time) *clock {
	c := &clock{now: now}
	c.changed = sync.NewCond(&c.mu)
	return c
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	s := &sleeper{asked: d, until: c.now.Add(d), woken: make(chan struct{})}
	c.sleepers = append(c.sleepers, s)
	c.changed.Broadcast()
	c.mu.Unlock()
	select {
	case <-s.woken:
		return nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sleepers = slices.DeleteFunc(c.sleepers, func(other *sleeper) bool { return other == s })
		return ctx.Err()
	}
}

// await returns when somebody sleeps who asked for d.
func (c *clock) await(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !slices.ContainsFunc(c.sleepers, func(s *sleeper) bool { return s.asked == d }) {
		c.changed.Wait()
	}
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.sleepers = slices.DeleteFunc(c.sleepers, func(s *sleeper) bool {
		if s.until.After(c.now) {
			return false
		}
		close(s.woken)
		return true
	})
}

// link is the way to the API server.
type link struct {
	next http.RoundTripper
	mu   sync.Mutex
	cut  error // what every request gets
	hang bool  // requests get no answer
}

func (l *link) set(cut error, hang bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.hang = cut, hang
}

func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	cut, hang := l.cut, l.hang
	l.mu.Unlock()
	if hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if cut != nil {
		return nil, cut
	}
	return l.next.RoundTrip(r)
}

var errCut = errors.New("the line is cut")

// process is a shard at work somewhere, with a clock of its own.
type process struct {
	*lease.Lock
	clock *clock
	link  *link

	mu    sync.Mutex
	notes []string
}

func (p *process) noted() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.notes, "\n")
}

// bench is a cluster with processes that contend for it.
type bench struct {
	config *rest.Config
	client kubernetes.Interface
}

// start starts a process.
func (b *bench) start(t *testing.T, runID, shard string) *process {
	t.Helper()
	p := &process{clock: newClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	p.Lock = b.lock(t, runID, shard, p, lease.Options{Duration: duration, Interval: interval, Poll: poll, Clock: p.clock})
	return p
}

func (b *bench) lock(t *testing.T, runID, shard string, p *process, o lease.Options) *lease.Lock {
	t.Helper()
	config := rest.CopyConfig(b.config)
	config.QPS, config.Burst = 500, 500
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		p.link = &link{next: next}
		return p.link
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	o.Note = func(text string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.notes = append(p.notes, text)
	}
	l := lease.New(client, lease.Holder{RunID: runID, Shard: shard, Host: "host-of-" + runID}, o)
	t.Cleanup(func() {
		p.link.set(nil, false)
		if err := l.Release(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// acquire gets the lock at once.
func (p *process) acquire(t *testing.T, g lease.Group) {
	t.Helper()
	if err := p.Acquire(t.Context(), g, false); err != nil {
		t.Fatal(err)
	}
}

// release gives the lock back.
func (p *process) release(t *testing.T) {
	t.Helper()
	if err := p.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// waiting begins to acquire, and returns when that has to wait.
func (p *process) waiting(ctx context.Context, g lease.Group, wait bool) <-chan error {
	done := make(chan error, 1)
	go func() { done <- p.Acquire(ctx, g, wait) }()
	p.clock.await(poll)
	return done
}

// look lets who waits look again, and returns when it must wait on.
func (p *process) look() {
	p.clock.step(poll)
	p.clock.await(poll)
}

// renew lets who holds renew.
func (p *process) renew() {
	p.clock.await(interval)
	p.clock.step(interval)
	p.clock.await(interval)
}

// lose lets who holds find out at its next renewal.
func (p *process) lose(t *testing.T, reason string) {
	t.Helper()
	p.clock.await(interval)
	lost := p.Lost()
	p.clock.step(interval)
	<-lost
	err := p.Err()
	if !errors.Is(err, lease.ErrLost) || !strings.Contains(err.Error(), reason) {
		t.Errorf("lost with %v, want %q", err, reason)
	}
	if again := p.Acquire(t.Context(), serial, true); !errors.Is(again, lease.ErrLost) {
		t.Errorf("who lost the lock and did not release it acquired: %v", again)
	}
}

func (b *bench) get(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	l, err := b.client.CoordinationV1().Leases(lease.Namespace).Get(t.Context(), lease.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (b *bench) gone(t *testing.T) {
	t.Helper()
	_, err := b.client.CoordinationV1().Leases(lease.Namespace).Get(context.Background(), lease.Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the Lease was left behind: %v", err)
	}
}

func (b *bench) remove(t *testing.T) {
	t.Helper()
	if err := b.client.CoordinationV1().Leases(lease.Namespace).Delete(t.Context(), lease.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// put writes a Lease that the package did not write.
func (b *bench) put(t *testing.T, holder, annotation string) {
	t.Helper()
	seconds := int32(60)
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: lease.Name, Annotations: map[string]string{"op-readiness/lock": annotation}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds},
	}
	leases := b.client.CoordinationV1().Leases(lease.Namespace)
	_, err := leases.Create(t.Context(), l, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		l.ResourceVersion = b.get(t).ResourceVersion
		_, err = leases.Update(t.Context(), l, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func heldBy(t *testing.T, err error) *lease.HeldError {
	t.Helper()
	var held *lease.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("got %v, want a HeldError", err)
	}
	return held
}

func TestLock(t *testing.T) {
	cluster := kwoktest.Up(t)
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{config: config, client: kwoktest.Client(t, cluster)}
	for _, test := range []struct {
		name string
		run  func(t *testing.T, b *bench)
	}{
		{"another run is refused and told who holds", refused},
		{"another run with the same plan is another run", exclusive},
		{"shards join only the same parallel group", shards},
		{"serial and disruptive groups are alone", alone},
		{"no other run comes between two groups", between},
		{"waiting gets the lock after release", waits},
		{"a dead holder is replaced after expiry and not before", deadHolder},
		{"a living holder is not replaced", livingHolder},
		{"a dead shard is waited for until it expires", deadShard},
		{"without wait who seems dead is looked at", seemsDead},
		{"without wait who only seems dead keeps the lock", onlySeemsDead},
		{"lost when the Lease is deleted", deleted},
		{"lost when the Lease is taken", taken},
		{"lost when another is let in beside", givenAway},
		{"lost when the Lease is garbled", garbledWhileHeld},
		{"lost when the API server is gone", serverGone},
		{"lost when the API server does not answer", serverHangs},
		{"lost when the process stood still for too long", stoodStill},
		{"an outage that ends in time loses nothing", outage},
		{"an outage is waited out from the first request to the last", outageAtBothEnds},
		{"an outage that goes on is an error in the end", outageForEver},
		{"what others did is known before the next renewal", confirmed},
		{"what is confirmed through an outage is certain", confirmedLate},
		{"a standstill is known before the next renewal", confirmedAfterStandstill},
		{"nobody is kept out for ten years", tenYears},
		{"an interrupted wait returns at once", interrupted},
		{"release is bounded by its context and can be repeated", releaseAgain},
		{"what cannot be read is held until it expires", unreadable},
		{"no permission names the rule", forbidden},
		{"a renewal that comes late makes no Lease", noResurrection},
		{"many contend", contention},
	} {
		t.Run(test.name, func(t *testing.T) {
			// Runs after the processes have released.
			t.Cleanup(func() { b.gone(t) })
			test.run(t, b)
		})
	}
}

func refused(t *testing.T, b *bench) {
	first, second := b.start(t, "run-1", "2/3"), b.start(t, "run-2", "")
	since := first.clock.Now()
	first.acquire(t, serial)
	first.renew()
	err := second.Acquire(t.Context(), asIs, false)
	held := heldBy(t, err)
	if held.Holder != (lease.Holder{RunID: "run-1", Shard: "2/3", Host: "host-of-run-1"}) || held.Group != serial ||
		!held.Since.Equal(since) || !held.Renewed.Equal(since.Add(interval)) || held.Expiry != duration {
		t.Errorf("held by %+v", held)
	}
	want := fmt.Sprintf("the cluster is locked by run run-1, shard 2/3 on host-of-run-1 (serial, as is; since %s, last renewed %s): "+
		"wait for it with --wait; a dead run's lock expires 40s after its last renewal, or is removed by: kubectl delete lease op-readiness --namespace default",
		since.Format(time.RFC3339), since.Add(interval).Format(time.RFC3339))
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	if second.Lost() != nil || second.Err() != nil {
		t.Error("who holds nothing has nothing to lose")
	}
}

func exclusive(t *testing.T, b *bench) {
	first, second := b.start(t, "run-1", "1/1"), b.start(t, "run-2", "1/1")
	first.acquire(t, asIs)
	_ = heldBy(t, second.Acquire(t.Context(), asIs, false))
	first.release(t)
	first.release(t)
	b.gone(t)
	second.acquire(t, asIs)
	_ = heldBy(t, first.Acquire(t.Context(), asIs, false))
}

func shards(t *testing.T, b *bench) {
	first, second, third := b.start(t, "run-1", "1/3"), b.start(t, "run-1", "2/3"), b.start(t, "run-1", "3/3")
	first.acquire(t, asIs)
	second.acquire(t, asIs)
	got := third.waiting(t.Context(), steered, false)
	if want := "waiting: the cluster is locked by run run-1, shard"; !strings.HasPrefix(third.noted(), want) {
		t.Errorf("noted %q, want %q", third.noted(), want)
	}
	first.release(t)
	third.look()
	second.release(t)
	third.clock.step(poll)
	if err := <-got; err != nil {
		t.Error(err)
	}
	if id := *b.get(t).Spec.HolderIdentity; id != "run-1" {
		t.Errorf("held by %s", id)
	}
}

func alone(t *testing.T, b *bench) {
	for _, g := range []lease.Group{serial, disruptive} {
		first, second := b.start(t, "run-1", "1/3"), b.start(t, "run-1", "2/3")
		other := b.start(t, "run-1", "3/3")
		first.acquire(t, asIs)
		second.acquire(t, asIs)
		got := other.waiting(t.Context(), g, false)
		first.release(t)
		other.look()
		second.release(t)
		other.clock.step(poll)
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		for _, g := range []lease.Group{asIs, g} {
			ctx, cancel := context.WithCancel(t.Context())
			got := first.waiting(ctx, g, false)
			cancel()
			if err := <-got; !errors.Is(err, context.Canceled) {
				t.Errorf("%s beside %s: %v", g, serial, err)
			}
			first.release(t)
		}
		other.release(t)
	}
}

func between(t *testing.T, b *bench) {
	first, second := b.start(t, "run-1", "1/2"), b.start(t, "run-1", "2/2")
	stranger := b.start(t, "run-2", "")
	first.acquire(t, asIs)
	second.acquire(t, asIs)
	stranger.waiting(t.Context(), asIs, true)

	got := first.waiting(t.Context(), steered, false)
	stranger.look()
	second.acquire(t, asIs) // its next group may be the same
	second.release(t)
	stranger.look()
	if held := heldBy(t, b.start(t, "run-3", "").Acquire(t.Context(), asIs, false)); held.Holder.Shard != "1/2" {
		t.Errorf("held by %+v", held)
	}
	first.clock.step(poll)
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	first.renew()
	first.acquire(t, serial)
	stranger.look()
	first.acquire(t, asIs)
	second.acquire(t, asIs)
	stranger.look()
}

func waits(t *testing.T, b *bench) {
	first, second := b.start(t, "run-1", ""), b.start(t, "run-2", "")
	first.acquire(t, serial)
	got := second.waiting(t.Context(), serial, true)
	for range 3 * duration / poll / 4 {
		second.look()
	}
	first.release(t)
	second.clock.step(poll)
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if notes := second.noted(); strings.Count(notes, "waiting: ") != 1 || strings.Contains(notes, "replaced") {
		t.Errorf("noted %s", notes)
	}
	second.renew()
	if id := *b.get(t).Spec.HolderIdentity; id != "run-2" {
		t.Errorf("held by %s", id)
	}
}

func deadHolder(t *testing.T, b *bench) {
	first, second := b.start(t, "run-1", ""), b.start(t, "run-2", "")
	second.clock.step(-1000 * time.Hour) // clocks of machines are not compared
	first.acquire(t, serial)
	first.renew()
	first.link.set(errCut, false)
	got := second.waiting(t.Context(), serial, true)
	for range duration/poll - 1 {
		second.look()
	}
	second.clock.step(poll)
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if want := "replaced a holder of the cluster lock that had died: run run-1 on host-of-run-1 (serial, as is;"; !strings.Contains(second.noted(), want) {
		t.Errorf("noted %q, want %q", second.noted(), want)
	}
	first.link.set(nil, false)
	first.lose(t, "taken by run run-2 on host-of-run-2")
	first.release(t)
	second.renew()
}

func livingHolder(t *testing.T, b *bench) {
	first, second := b.start(t, "run-1", ""), b.start(t, "run-2", "")
	second.clock.step(1000 * time.Hour) // clocks of machines are not compared
	first.acquire(t, serial)
	got := second.waiting(t.Context(), serial, true)
	for range 3 {
		for range duration/poll - 1 {
			second.look()
		}
		first.renew()
		second.look()
	}
	select {
	case err := <-got:
		t.Errorf("a living holder was replaced: %v", err)
	default:
	}
}

func deadShard(t *testing.T, b *bench) {
	first, second, third := b.start(t, "run-1", "1/3"), b.start(t, "run-1", "2/3"), b.start(t, "run-1", "3/3")
	first.acquire(t, asIs)
	second.acquire(t, asIs)
	first.link.set(errCut, false)
	got := third.waiting(t.Context(), serial, false)
	second.release(t)
	for range duration/poll - 1 {
		third.look()
	}
	third.clock.step(poll)
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	third.release(t) // its renewal may have been the one to note it
	if !strings.Contains(third.noted(), "had died: run run-1, shard 1/3") {
		t.Errorf("noted %q", third.noted())
	}
}

func seemsDead(t *testing.T, b *bench) {
	first, second := b.start(t, "run-1", ""), b.start(t, "run-2", "")
	first.acquire(t, serial)
	first.link.set(errCut, false)
	second.clock.step(first.clock.Now().Add(duration).Sub(second.clock.Now()))
	got := second.waiting(t.Context(), serial, false)
	for range duration/poll - 1 {
		second.look()
	}
	second.clock.step(poll)
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func onlySeemsDead(t *testing.T, b *bench) {
	first, second := b.start(t, "run-1", ""), b.start(t, "run-2", "")
	first.acquire(t, serial)
	second.clock.step(first.clock.Now().Add(24 * time.Hour).Sub(second.clock.Now()))
	got := second.waiting(t.Context(), serial, false)
	second.look()
	first.renew()
	second.clock.step(poll)
	_ = heldBy(t, <-got)
}

func deleted(t *testing.T, b *bench) {
	first := b.start(t, "run-1", "")
	first.acquire(t, serial)
	b.remove(t)
	first.lose(t, "Lease default/op-readiness was deleted")
	b.gone(t)
	first.release(t)
	first.acquire(t, serial)
	first.renew()
}

func taken(t *testing.T, b *bench) {
	first, second := b.start(t, "run-1", ""), b.start(t, "run-2", "1/2")
	first.acquire(t, serial)
	b.remove(t)
	second.acquire(t, asIs)
	first.lose(t, "taken by run run-2, shard 1/2 on host-of-run-2 (parallel, as is;")
	first.release(t)
	second.renew()
}

func givenAway(t *testing.T, b *bench) {
	first := b.start(t, "run-1", "")
	first.acquire(t, serial)
	l := b.get(t)
	const key = "op-readiness/lock"
	more := `{"id":"x","phase":"parallel","since":"2026-01-01T00:00:00Z","renewed":"2026-01-01T00:00:00Z","duration":"40s"}`
	l.Annotations[key] = strings.Replace(l.Annotations[key], `"members":[`, `"members":[`+more+",", 1)
	b.put(t, "run-1", l.Annotations[key])
	first.lose(t, "also given to run run-1 (parallel, as is;")
	b.remove(t)
}

func garbledWhileHeld(t *testing.T, b *bench) {
	first := b.start(t, "run-1", "")
	first.acquire(t, serial)
	b.put(t, "run-1", "]")
	first.lose(t, "Lease default/op-readiness cannot be read any more")
	first.release(t)
	b.remove(t) // nobody removes what nobody can read
}

func serverGone(t *testing.T, b *bench) {
	first := b.start(t, "run-1", "")
	first.acquire(t, serial)
	lost := first.Lost()
	first.clock.await(interval)
	first.link.set(errCut, false)
	first.clock.step(interval)
	for range (duration - interval) / poll {
		first.clock.await(poll)
		select {
		case <-lost:
			t.Fatal("lost before the lease has expired")
		default:
		}
		first.clock.step(poll)
	}
	<-lost
	if err := first.Err(); !errors.Is(err, lease.ErrLost) || !strings.Contains(err.Error(), "could not be renewed for 40s: the API server is away: ") || !strings.Contains(err.Error(), "the line is cut") {
		t.Error(err)
	}
}

func stoodStill(t *testing.T, b *bench) {
	first := b.start(t, "run-1", "")
	first.acquire(t, serial)
	first.renew()
	lost := first.Lost()
	first.clock.step(duration)
	<-lost
	if err := first.Err(); !strings.Contains(err.Error(), "could not be renewed for 40s: this process stood still") {
		t.Error(err)
	}
}

func serverHangs(t *testing.T, b *bench) {
	p := &process{}
	l := b.lock(t, "run-1", "", p, lease.Options{Duration: 400 * time.Millisecond})
	if err := l.Acquire(t.Context(), serial, false); err != nil {
		t.Fatal(err)
	}
	p.link.set(nil, true)
	<-l.Lost()
	if err := l.Err(); !errors.Is(err, lease.ErrLost) {
		t.Error(err)
	}
}

func outage(t *testing.T, b *bench) {
	first, second := b.start(t, "run-1", ""), b.start(t, "run-2", "")
	first.acquire(t, serial)
	got := second.waiting(t.Context(), serial, true)
	first.link.set(errCut, false)
	second.link.set(errCut, false)
	first.clock.step(interval)
	first.clock.await(poll)
	second.look()
	first.link.set(nil, false)
	second.link.set(nil, false)
	first.clock.step(poll)
	first.renew()
	second.look()
	first.release(t)
	second.clock.step(poll)
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func outageAtBothEnds(t *testing.T, b *bench) {
	p := b.start(t, "run-1", "")
	for _, do := range []func(context.Context) error{
		func(ctx context.Context) error { return p.Acquire(ctx, serial, false) },
		func(ctx context.Context) error {
			peers, err := p.Peers(ctx)
			if len(peers) > 0 {
				t.Errorf("peers %q", peers)
			}
			return err
		},
		p.Release,
	} {
		p.link.set(errCut, false)
		done := make(chan error, 1)
		go func() { done <- do(t.Context()) }()
		p.clock.await(poll)
		p.link.set(nil, false)
		p.clock.step(poll)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func outageForEver(t *testing.T, b *bench) {
	p := b.start(t, "run-1", "")
	p.link.set(errCut, false)
	done := make(chan error, 1)
	go func() { done <- p.Acquire(t.Context(), serial, true) }()
	for range duration / poll {
		p.clock.await(poll)
		p.clock.step(poll)
	}
	if err := <-done; !errors.Is(err, errCut) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- p.Acquire(ctx, serial, true) }()
	p.clock.await(poll)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the line is cut") {
		t.Error(err)
	}
}

func confirmed(t *testing.T, b *bench) {
	first, second := b.start(t, "run-1", ""), b.start(t, "run-2", "1/2")
	first.acquire(t, serial)
	before := b.get(t).ResourceVersion
	if err := first.Confirm(t.Context()); err != nil || b.get(t).ResourceVersion == before {
		t.Errorf("it was not renewed: %v", err)
	}
	b.remove(t)
	second.acquire(t, asIs)
	err := first.Confirm(t.Context())
	if !errors.Is(err, lease.ErrLost) || !strings.Contains(err.Error(), "taken by run run-2, shard 1/2") {
		t.Error(err)
	}
	if again := first.Err(); again == nil || again.Error() != err.Error() {
		t.Errorf("lost with %v, and then with %v", err, again)
	}
}

func confirmedLate(t *testing.T, b *bench) {
	p := b.start(t, "run-1", "")
	p.acquire(t, serial)
	p.clock.await(interval)
	p.link.set(errCut, false)
	done := make(chan error, 1)
	go func() { done <- p.Confirm(t.Context()) }()
	p.clock.await(poll)
	p.link.set(nil, false)
	p.clock.step(poll)
	if err := <-done; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Confirm(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, lease.ErrLost) || p.Err() != nil {
		t.Errorf("nothing is lost where nobody waits: %v, %v", err, p.Err())
	}
}

func confirmedAfterStandstill(t *testing.T, b *bench) {
	first, second := b.start(t, "run-1", ""), b.start(t, "run-2", "")
	first.acquire(t, serial)
	first.clock.await(interval)
	before := b.get(t).ResourceVersion
	first.clock.mu.Lock() // as when a machine is suspended, no timer has run out
	first.clock.now = first.clock.now.Add(duration)
	first.clock.mu.Unlock()
	if err := first.Confirm(t.Context()); !errors.Is(err, lease.ErrLost) || !strings.Contains(err.Error(), "stood still") {
		t.Error(err)
	}
	if b.get(t).ResourceVersion != before {
		t.Error("who has lost the lock has renewed it")
	}
	if lost := first.Lost(); lost == nil {
		t.Error("the lock is not held")
	} else {
		<-lost
	}
	first.release(t)
	second.acquire(t, serial)
}

func tenYears(t *testing.T, b *bench) {
	for _, claims := range []string{"87600h", "3601s"} {
		b.put(t, "run-1", `{"schema":1,"members":[{"id":"x","phase":"serial","since":"2026-01-01T00:00:00Z","renewed":"2026-01-01T00:00:00Z","duration":"`+claims+`"}]}`)
		l, seconds := b.get(t), int32(10*365*24*3600)
		l.Spec.LeaseDurationSeconds = &seconds
		if _, err := b.client.CoordinationV1().Leases(lease.Namespace).Update(t.Context(), l, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		p := b.start(t, "run-2", "")
		if held := heldBy(t, p.Acquire(t.Context(), serial, false)); held.Expiry != duration || !strings.Contains(held.Error(), claims) {
			t.Errorf("held by %+v: %v", held, held)
		}
		got := p.waiting(t.Context(), serial, true)
		for range duration/poll - 1 {
			p.look()
		}
		p.clock.step(poll)
		if err := <-got; err != nil {
			t.Error(err)
		}
		p.release(t)
	}
}

func interrupted(t *testing.T, b *bench) {
	first, second := b.start(t, "run-1", ""), b.start(t, "run-2", "")
	ctx, cancel := context.WithCancel(t.Context())
	first.acquire(t, serial)
	before := b.get(t).ResourceVersion
	got := second.waiting(ctx, serial, true)
	second.link.set(nil, true) // not even a request is needed
	cancel()
	err := <-got
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if held := heldBy(t, err); held.Holder.RunID != "run-1" {
		t.Errorf("held by %+v", held)
	}
	if err := second.Acquire(ctx, serial, true); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if after := b.get(t).ResourceVersion; after != before {
		t.Error("who waited for another run has written")
	}
}

func releaseAgain(t *testing.T, b *bench) {
	first := b.start(t, "run-1", "")
	first.acquire(t, serial)
	first.clock.await(interval)
	first.link.set(nil, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := first.Release(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "by itself after 40s") {
		t.Error(err)
	}
	first.link.set(nil, false)
	b.get(t)
	first.release(t)
	b.gone(t)
}

func unreadable(t *testing.T, b *bench) {
	p := b.start(t, "run-1", "")
	for _, test := range []struct{ annotation, problem string }{
		{"}", "annotation op-readiness/lock: invalid character"},
		{`{"schema":2,"members":{}}`, "a newer version of op-readiness wrote it (schema 2, this one reads 1)"},
	} {
		b.put(t, "somebody", test.annotation)
		err := p.Acquire(t.Context(), serial, false)
		held := heldBy(t, err)
		if held.Unreadable == nil || held.Expiry != time.Minute {
			t.Errorf("held by %+v", held)
		}
		for _, want := range []string{"Lease default/op-readiness, which cannot be read: " + test.problem, "kubectl delete lease op-readiness --namespace default", "--wait"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: want %q", err, want)
			}
		}
		got := p.waiting(t.Context(), serial, true)
		p.look()
		b.put(t, "somebody", test.annotation+" ") // its holder lives
		for range time.Minute / poll {
			p.look()
		}
		p.clock.step(poll)
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(p.noted(), "could not be read: "+test.problem) {
			t.Errorf("noted %s", p.noted())
		}
		p.renew()
		p.release(t)
		b.gone(t)
	}
}

func forbidden(t *testing.T, b *bench) {
	nobody := *b
	nobody.config = rest.CopyConfig(b.config)
	nobody.config.Impersonate.UserName = "nobody"
	err := nobody.start(t, "run-1", "").Acquire(t.Context(), serial, true)
	if err == nil {
		t.Skip("this cluster's API server authorizes everybody")
	}
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "allow get, create, update, delete of leases.coordination.k8s.io in namespace default") {
		t.Error(err)
	}
}

// That a Lease can be created by an update is a peculiarity of Leases: the lock
// relies on it that this never happens with an object that was read.
func noResurrection(t *testing.T, b *bench) {
	p := b.start(t, "run-1", "")
	p.acquire(t, serial)
	read := b.get(t)
	p.release(t)
	_, err := b.client.CoordinationV1().Leases(lease.Namespace).Update(t.Context(), read, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		t.Errorf("a Lease that was removed was updated: %v", err)
	}
}

func contention(t *testing.T, b *bench) {
	const runs, shards, rounds = 3, 6, 4
	type place struct {
		run   int
		group lease.Group
	}
	var mu sync.Mutex
	inside := map[*lease.Lock]place{}
	together := false
	var all sync.WaitGroup
	for run := range runs {
		for shard := range shards {
			l := b.lock(t, fmt.Sprintf("run-%d", run), fmt.Sprint(shard), &process{}, lease.Options{Poll: 5 * time.Millisecond})
			all.Go(func() {
				for round := range rounds {
					g := []lease.Group{asIs, steered, serial, asIs}[(round+shard/2)%4]
					if err := l.Acquire(t.Context(), g, true); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					me := place{run, g}
					for _, other := range inside {
						if g.Phase != specs.Parallel || other != me {
							t.Errorf("%+v beside %+v", me, other)
						}
					}
					inside[l] = me
					together = together || len(inside) > 1
					mu.Unlock()
					for range 3 { // work takes a while
						b.get(t)
					}
					if l.Err() != nil {
						t.Error(l.Err())
					}
					mu.Lock()
					delete(inside, l)
					mu.Unlock()
					if round%2 == 1 {
						if err := l.Release(t.Context()); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
	}
	all.Wait()
	if !together {
		t.Error("shards were never inside together")
	}
}
