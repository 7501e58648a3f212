package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

const (
	// maxOutages is how many outages are kept, the newest ones; maxShown how many
	// of them are shown at once.
	maxOutages = 1000
	maxShown   = 3
	// settles is for how long the API server must have answered for the next
	// failure to be another outage.
	settles = time.Second
	// patience is for how long a request must have waited in vain for that to be
	// the API server's doing: some have little time from the beginning.
	patience = 5 * time.Second
)

// outages are the times in which requests of this process met no API server, or
// one that failed.
type outages struct {
	mu   sync.Mutex
	all  []outage // in their order
	away bool     // the last one goes on
}

type outage struct {
	from, to time.Time
	why      string // what the first request met
	requests int
}

// failed notes that a request failed that had begun at that time.
func (o *outages) failed(r *http.Request, began time.Time, met string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if n := len(o.all); n > 0 && (o.away || began.Sub(o.all[n-1].to) < settles) {
		last := &o.all[n-1]
		last.to, o.away = now, true
		last.requests++
		return
	}
	if len(o.all) == maxOutages {
		o.all = append(o.all[:0], o.all[1:]...)
	}
	what := r.Method + " " + r.URL.Path
	if r.URL.Query().Has("watch") {
		what = "the watch on " + r.URL.Path
	}
	o.all = append(o.all, outage{from: began, to: now, why: result.Cut(what+": "+met, 300), requests: 1})
	o.away = true
}

// answered notes that the API server is there.
func (o *outages) answered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.away {
		o.all[len(o.all)-1].to, o.away = time.Now(), false
	}
}

// Outages says when the API server was away since a time, or failed, as the requests
// met it that this connection sent, and those that are beside it: the watches, the
// renewals of the lock, the questions whether it is there. "" is never.
func (c *Cluster) Outages(since time.Time) string {
	o := c.outages
	o.mu.Lock()
	defer o.mu.Unlock()
	const clock = "15:04:05.000"
	var shown []string
	more := 0
	for i, a := range o.all {
		goesOn := o.away && i == len(o.all)-1
		switch {
		case a.to.Before(since) && !goesOn:
			continue
		case len(shown) == maxShown:
			more++
			continue
		}
		when := fmt.Sprintf("between %s and %s UTC", a.from.UTC().Format(clock), a.to.UTC().Format(clock))
		if goesOn {
			when = fmt.Sprintf("since %s UTC", a.from.UTC().Format(clock))
		}
		who := "a request of op-readiness"
		if a.requests > 1 {
			who = fmt.Sprintf("%d requests of op-readiness, the first", a.requests)
		}
		shown = append(shown, fmt.Sprintf("the API server was away %s, seen by %s: %s", when, who, a.why))
	}
	if more > 0 {
		shown = append(shown, fmt.Sprintf("and %d times more", more))
	}
	return strings.Join(shown, "; ")
}

// transport notes the outages that requests meet on their way through next, which
// end after limit.
type transport struct {
	*outages
	next  http.RoundTripper
	limit time.Duration
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	answer, err := t.next.RoundTrip(r)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && time.Since(began) < patience:
		// It was given up here.
	case err != nil:
		t.failed(r, began, err.Error())
	case answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= http.StatusInternalServerError:
		t.failed(r, began, "it answered "+answer.Status)
	default:
		t.answered()
		answer.Body = &body{ReadCloser: answer.Body, request: r, began: began, limit: t.limit, outages: t.outages}
	}
	return answer, err
}

// WrappedRoundTripper lets client-go find what cancels a request.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// body is an answer that may be cut off, as a watch is when its connection breaks.
type body struct {
	io.ReadCloser
	*outages
	request *http.Request
	began   time.Time
	limit   time.Duration
	closed  atomic.Bool
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !b.closed.Load() && !b.givenUp() {
		b.failed(b.request, time.Now(), err.Error())
	}
	return n, err
}

// givenUp reports whether the request was ended here: by whoever made it, or by the
// time that every request has, watches too. The timer is the client's, and started
// a little before the request came here.
func (b *body) givenUp() bool {
	return b.request.Context().Err() != nil || time.Since(b.began) > b.limit-time.Second
}

// Close implements [io.Closer].
func (b *body) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}
