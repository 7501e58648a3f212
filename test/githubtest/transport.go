package githubtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"time"
)

// Transport carries requests to a handler without a network, so that a test with
// a clock of its own (testing/synctest) can have latency and time limits.
type Transport struct {
	Handler http.Handler
	// Latency is how long each way takes; nil means none.
	Latency func() time.Duration
}

// RoundTrip implements [http.RoundTripper]. An answer that the handler breaks off
// ends with an error, as it would on a network.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.travel(r.Context()); err != nil {
		return nil, err
	}
	inner := r.Clone(r.Context())
	if inner.Body == nil {
		inner.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	broken := t.serve(recorder, inner)
	if err := t.travel(r.Context()); err != nil {
		return nil, err
	}
	response := recorder.Result()
	response.Request = r
	if broken {
		response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(recorder.Body.Bytes()), failing{}))
	}
	return response, nil
}

func (t *Transport) serve(w http.ResponseWriter, r *http.Request) (broken bool) {
	defer func() {
		if what := recover(); what != nil {
			if err, ok := what.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				panic(what)
			}
			broken = true
		}
	}()
	t.Handler.ServeHTTP(w, r)
	return false
}

func (t *Transport) travel(ctx context.Context) error {
	if t.Latency == nil {
		return ctx.Err()
	}
	timer := time.NewTimer(t.Latency())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
