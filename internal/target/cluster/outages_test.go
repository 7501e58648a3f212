package cluster

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// server answers when it is there.
type server struct{ err error }

func (s *server) RoundTrip(*http.Request) (*http.Response, error) {
	if s.err != nil {
		return nil, s.err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestOutagesOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		c := &Cluster{outages: &outages{}}
		through := &transport{c.outages, s, requestTimeout}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/version", nil)
		if err != nil {
			t.Fatal(err)
		}
		ask := func(err error) {
			s.err = err
			if _, got := through.RoundTrip(r); !errors.Is(got, err) {
				t.Errorf("%v became %v", err, got)
			}
		}
		refused := errors.New("connection refused")
		told := func(want int) {
			t.Helper()
			if got := c.Outages(time.Time{}); strings.Count(got, "the API server was away") != want {
				t.Errorf("%q, want %d", got, want)
			}
		}

		// Whoever has little time from the beginning gives up early.
		ask(context.DeadlineExceeded)
		told(0)
		ask(refused)
		ask(nil)
		told(1)
		time.Sleep(settles / 2)
		ask(refused) // it flaps
		ask(nil)
		told(1)
		time.Sleep(settles)
		ask(refused)
		time.Sleep(time.Hour)
		ask(refused)
		ask(nil)
		told(2)
		const more = 2 * maxOutages
		for range more {
			time.Sleep(settles)
			ask(refused)
			ask(nil)
		}
		told(maxShown)
		if n := len(c.outages.all); n != maxOutages {
			t.Errorf("%d outages are kept", n)
		}
		if got := c.Outages(time.Now()); strings.Count(got, "; ") > 0 {
			t.Errorf("since now: %q", got)
		}
	})
}

// slow answers nothing for as long as one waits.
type slow struct{}

func (slow) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestAServerThatStandsStillIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Cluster{outages: &outages{}}
		began := time.Now()
		for _, patient := range []time.Duration{patience / 2, patience} {
			ctx, cancel := context.WithTimeout(t.Context(), patient)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://server/version", nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = (&transport{c.outages, slow{}, requestTimeout}).RoundTrip(r)
			cancel()
			if got := c.Outages(began); !errors.Is(err, context.DeadlineExceeded) || (got != "") != (patient >= patience) {
				t.Errorf("after %v: %q, %v", patient, got, err)
			}
		}
	})
}
