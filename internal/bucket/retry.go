package bucket

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"
)

// Retry says how a request is repeated that failed with 408, 429 or 5xx, or
// without an answer. What the server asks for in Retry-After is obeyed.
type Retry struct {
	// Attempts is how often a request is sent at most; 0 is 8, which with the
	// default waits takes about a minute.
	Attempts int
	// Wait is the first wait, and doubles with each attempt up to MaxWait; a
	// random part of it is left out. 0 is half a second, and 30 seconds.
	Wait, MaxWait time.Duration
	// Timeout is how long one attempt may take, beside the time that an
	// upload's size allows it; 0 is a minute.
	Timeout time.Duration
	// Note is told of every attempt that failed and is repeated; may be nil.
	Note func(what string, err error, wait time.Duration)
}

// maxRetryAfter is the longest wait that a server can ask for.
const maxRetryAfter = 2 * time.Minute

// slowest is the rate of an upload, in bytes a second, under which an attempt
// counts as hung.
const slowest = 64 << 10

func (r Retry) withDefaults() Retry {
	if r.Attempts <= 0 {
		r.Attempts = 8
	}
	if r.Wait <= 0 {
		r.Wait = 500 * time.Millisecond
	}
	if r.MaxWait <= 0 {
		r.MaxWait = 30 * time.Second
	}
	if r.Timeout <= 0 {
		r.Timeout = time.Minute
	}
	return r
}

// do calls f until it succeeds, fails for good, or was called often enough.
// size is how many bytes f uploads.
func (b *Bucket) do(ctx context.Context, what string, size int64, f func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		err := b.try(ctx, size, f)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if attempt == b.retry.Attempts || !b.answers() || !worthRepeating(err) {
			return err
		}
		wait := b.retry.wait(attempt, retryAfter(err, time.Now()))
		if b.retry.Note != nil {
			b.retry.Note(what, scrub(err), wait)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// answers reports whether the bucket is a server, whose answers can be lost.
func (b *Bucket) answers() bool { return b.Scheme != File }

func (b *Bucket) try(ctx context.Context, size int64, f func(context.Context) error) error {
	limit := b.retry.Timeout + time.Duration(float64(size)/slowest*float64(time.Second))
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return f(ctx)
}

// wait is how long to wait after an attempt, counted from 1.
func (r Retry) wait(attempt int, asked time.Duration) time.Duration {
	wait := r.MaxWait
	if shift := attempt - 1; shift < 20 {
		wait = min(wait, r.Wait<<shift)
	}
	wait -= rand.N(wait/2 + 1)
	return max(wait, min(asked, maxRetryAfter))
}

// sourceError is a failure to read what was to be uploaded.
type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

// worthRepeating reports whether the same request may succeed a little later.
func worthRepeating(err error) bool {
	var source sourceError
	var certificate *tls.CertificateVerificationError
	switch status := statusOf(err); {
	case errors.As(err, &source), errors.As(err, &certificate):
		return false
	case errors.Is(err, ErrNotExist), errors.Is(err, ErrExists):
		return false
	case status == 0:
		return true // no answer at all
	default:
		return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
	}
}

// statusOf returns the HTTP status of an answer that became an error, or 0.
func statusOf(err error) int {
	status, _ := answerOf(err)
	return status
}

// answerOf returns status and headers of an answer that became an error.
func answerOf(err error) (int, http.Header) {
	var google *googleapi.Error
	if errors.As(err, &google) {
		return google.Code, google.Header
	}
	var amazon *smithyhttp.ResponseError
	if errors.As(err, &amazon) && amazon.Response != nil {
		return amazon.Response.StatusCode, amazon.Response.Header
	}
	var token *oauth2.RetrieveError
	if errors.As(err, &token) && token.Response != nil {
		return token.Response.StatusCode, token.Response.Header
	}
	return 0, nil
}

// retryAfter is how long the server asked to wait, or 0.
func retryAfter(err error, now time.Time) time.Duration {
	_, header := answerOf(err)
	value := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(max(0, seconds), int(maxRetryAfter/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// reader marks errors of reading a source as such.
type reader struct{ io.Reader }

func (r reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = sourceError{err}
	}
	return n, err
}
