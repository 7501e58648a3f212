//go:build unix

package faults

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

var ownName = regexp.MustCompile(`op-readiness-(steering|barrier)-[a-z0-9-]+`)

// once matches the first request of each kind from the moment when a run takes
// the lock, and remembers which it were.
type once struct {
	mu  sync.Mutex
	met []string
}

func (o *once) match(r *http.Request) bool {
	if !ours(r) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	kind := r.Method + " " + ownName.ReplaceAllString(r.URL.Path, "X")
	if len(o.met) == 0 && !strings.Contains(kind, "/leases/") || slices.Contains(o.met, kind) {
		return false
	}
	o.met = append(o.met, kind)
	return true
}

// Every request that a run makes fails once, in each way in which requests fail:
// the run comes to what it comes to without.
func TestEachRequestFailsOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	lease := "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	policies := "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
	for _, way := range []struct {
		steer string
		asked []string
	}{
		{"policy", []string{"GET " + policies, "POST " + policies, "DELETE " + policies + "/X", "POST " + strings.Replace(policies, "ies", "ybindings", 1), "POST /api/v1/namespaces"}},
		{"cordon", []string{"GET /api/v1/nodes", "PATCH /api/v1/nodes/linux-1", "POST /api/v1/namespaces"}},
	} {
		for how, answer := range map[string]http.HandlerFunc{
			"503":         kwoktest.Refuse(http.StatusServiceUnavailable),
			"429":         kwoktest.Refuse(http.StatusTooManyRequests),
			"cut":         kwoktest.Cut,
			"lost answer": s.proxy.Lose,
		} {
			t.Run(way.steer+", "+how, func(t *testing.T) {
				var broken once
				s.proxy.BreakOnly(broken.match, answer)
				defer s.proxy.Fix()
				r := s.start(t, nil, "--steer", way.steer, "--case", "steered")
				run, j := r.ends(t)
				ended(t, r, run, "steered:passed")
				onlySimulated(t, j)
				if !run.Finished {
					t.Error("the run did not come to its end")
				}
				s.nothingLeft(t)
				broken.mu.Lock()
				defer broken.mu.Unlock()
				for _, kind := range append([]string{"GET " + lease + "/op-readiness", "POST " + lease, "PUT " + lease + "/op-readiness", "DELETE " + lease + "/op-readiness"}, way.asked...) {
					if !slices.Contains(broken.met, kind) {
						t.Errorf("no %s was broken, of %q", kind, broken.met)
					}
				}
			})
		}
	}
}

// A test that passes while the API server is away has passed, when that comes back
// before the lock has expired.
func TestAnOutageThatHeals(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for how, outage := range map[string]http.HandlerFunc{
		"refuses":      kwoktest.Refuse(http.StatusServiceUnavailable),
		"cuts":         kwoktest.Cut,
		"stands still": s.proxy.StandStill,
	} {
		t.Run(how, func(t *testing.T) {
			r := s.start(t, map[string][]string{serial: {e2etest.Wait}}, "--case", "serial")
			r.await(t, "the test runs", func() bool { return r.has(result.TestStarted, serial) })
			var renewals atomic.Int32
			s.proxy.Break(func(w http.ResponseWriter, req *http.Request) bool {
				if strings.Contains(req.URL.Path, "/leases/") {
					renewals.Add(1)
				}
				outage(w, req)
				return true
			})
			r.goOn(t)
			r.await(t, "renewals fail", func() bool { return renewals.Load() >= 2 })
			if r.has(result.TestFinished, serial) {
				t.Error("the pass was recorded before anybody could know whether the lock was held")
			}
			s.proxy.Fix()
			run, j := r.ends(t)
			ended(t, r, run, "serial:passed")
			onlySimulated(t, j)
			s.nothingLeft(t)
		})
	}
}

// What was learned before the API server went away for good is judged and written,
// and the next run clears away what is left.
func TestAnOutageThatDoesNotHeal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.start(t, map[string][]string{steered: {e2etest.Wait}})
	r.await(t, "the test runs", func() bool { return r.has(result.TestStarted, steered) })
	s.proxy.Break(func(w http.ResponseWriter, _ *http.Request) bool {
		kwoktest.Refuse(http.StatusServiceUnavailable)(w, nil)
		return true
	})
	r.goOn(t)
	run, j := r.ends(t)
	ended(t, r, run, "plain:passed steered:error serial:error")
	for _, id := range []string{"steered", "serial"} {
		if got := reason(j, id); !strings.Contains(got, "the cluster lock was lost") || !strings.Contains(got, "for 40s") {
			t.Errorf("%s: %s", id, got)
		}
	}
	if left := s.left(t); !strings.Contains(left, "lease mutatingadmissionpolicies mutatingadmissionpolicybindings") {
		t.Errorf("the server was not away: left is %q", left)
	}
	s.proxy.Fix()
	next := s.start(t, nil, "--case", "plain")
	run, j = next.ends(t)
	ended(t, next, run, "plain:passed")
	onlySimulated(t, j)
	s.nothingLeft(t)
}

// An error that is not an outage ends the run, and is told; what there is is judged
// and written, and the run can be gone on with.
func TestWhatAnErrorEndsIsJudged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var r *runner
	var mu sync.Mutex
	s.proxy.BreakOnly(func(req *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		return ours(req) && strings.Contains(req.URL.Path, "/leases/") && r.has(result.TestFinished, plain) && !r.has(result.TestFinished, serial)
	}, kwoktest.Refuse(http.StatusForbidden))
	mu.Lock()
	r = s.start(t, nil, "--case", "plain,serial")
	mu.Unlock()
	run, j := r.ends(t)
	ended(t, r, run, "plain:passed serial:")
	if run.Finished || !run.Manifest.Finished.IsZero() {
		t.Error("the run says that it came to its end")
	}
	if got := strings.Join(j.Reasons, "\n"); !strings.Contains(got, "an error ended it") {
		t.Errorf("inconclusive because %s", got)
	}
	if said := r.said.String(); !strings.Contains(said, "op-readiness: locking the cluster: ") || !strings.Contains(said, "allow get, create, update, delete of leases") {
		t.Errorf("the error is not told:\n%s", said)
	}
	s.proxy.Fix()
	r.resume(t)
	run, j = r.ends(t)
	ended(t, r, run, "plain:passed serial:passed")
	onlySimulated(t, j)
	s.nothingLeft(t)
}

// Steering cannot be taken away, and the lock is given back all the same.
func TestTheLockGoesWhenSteeringStays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.proxy.BreakOnly(kwoktest.On(http.MethodDelete, "/mutatingadmissionpolic"), s.proxy.StandStill)
	r := s.start(t, nil, "--case", "steered")
	run, j := r.ends(t)
	ended(t, r, run, "steered:passed")
	onlySimulated(t, j)
	if left := s.left(t); left != "mutatingadmissionpolicies mutatingadmissionpolicybindings" {
		t.Errorf("left in the cluster: %s", left)
	}
	if !strings.Contains(r.said.String(), "the next run removes what is left of the steering policies") {
		t.Errorf("what is left is not told:\n%s", &r.said)
	}
	s.proxy.Fix()
	next := s.start(t, nil, "--case", "plain")
	run, _ = next.ends(t)
	ended(t, next, run, "plain:passed")
	s.nothingLeft(t)
}
