package github

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// DefaultAPI is where the API of github.com is.
const DefaultAPI = "https://api.github.com"

// API is a client of GitHub's API.
type API struct {
	*github.Client
	next      http.RoundTripper
	narration io.Writer
}

// NewClient makes a client of GitHub's API that reads again as GitHub asks:
// after the time that a rate limit names, and with growing pauses after 5xx and
// errors of the network. What writes is sent once: whoever writes has to look
// again first, as [Poster] does. api is the address of the API, also that of a
// GitHub Enterprise server ($GITHUB_API_URL); token may be empty, and is sent to
// that address only, wherever answers lead. userAgent names the program.
// narration is told of each wait.
func NewClient(api, token, userAgent string, narration io.Writer) (*API, error) {
	return newClient(api, token, userAgent, narration, http.DefaultTransport)
}

func newClient(api, token, userAgent string, narration io.Writer, next http.RoundTripper) (*API, error) {
	base, err := url.Parse(strings.TrimSuffix(api, "/") + "/")
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("%q is not the address of an API: give one such as %s", shown.Line(text.Cut(api, maxText)), DefaultAPI)
	}
	client := github.NewClient(&http.Client{Transport: &retrying{next: next, narration: narration, base: base, token: token}})
	client.BaseURL, client.UserAgent = base, userAgent
	return &API{client, next, narration}, nil
}

// ValidToken returns an error when no request can carry token. The error does not
// tell it.
func ValidToken(token string) error {
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("it holds characters that no token has, such as a space or a new line: give the token alone")
	}
	return nil
}

// How requests are tried again.
const (
	tries = 6
	// pause is the first one after an error; each further one is twice as long.
	pause = time.Second
	// secondaryPause is the first one after a secondary rate limit that names no
	// time: GitHub asks for at least a minute.
	secondaryPause = time.Minute
	// longestPause is the longest time to wait for a limit. The primary one is
	// lifted within an hour; a job that waits for that is worse than one that
	// says so.
	longestPause   = 10 * time.Minute
	attemptTimeout = 30 * time.Second
	maxAnswer      = 32 << 20
)

// retrying is an [http.RoundTripper] that sends requests again that only read.
type retrying struct {
	next      http.RoundTripper
	narration io.Writer
	// token is for requests to the host of base, and for no other.
	base  *url.URL
	token string
}

// tellWait says why there is a wait. Either of response and err is set.
func tellWait(w io.Writer, response *http.Response, err error, wait time.Duration) {
	var why string
	switch {
	case err != nil:
		why = text.Cut(shown.Line(err.Error()), maxText)
	case limited(response):
		why = fmt.Sprintf("its rate limit is reached (%d)", response.StatusCode)
	default:
		why = strconv.Itoa(response.StatusCode) + " " + http.StatusText(response.StatusCode)
	}
	fmt.Fprintf(w, "GitHub: %s: trying again in %s\n", why, wait.Round(time.Second))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// RoundTrip implements [http.RoundTripper].
func (t *retrying) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		return t.once(request)
	}
	for try := 1; ; try++ {
		response, err := t.once(request)
		wait, again := retryAfter(response, err, try)
		if request.Context().Err() != nil || !again || try == tries {
			return response, err
		}
		tellWait(t.narration, response, err, wait)
		if err := sleep(request.Context(), wait); err != nil {
			return nil, err
		}
	}
}

// once sends the request, and reads the whole answer, so that one that is cut
// off counts as an error of the network. So does a page where JSON should be,
// such as that of a proxy.
func (t *retrying) once(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(request.Context(), attemptTimeout)
	defer cancel()
	sent := request.Clone(ctx)
	if t.token != "" && sent.URL.Host == t.base.Host && sent.URL.Scheme == t.base.Scheme {
		sent.Header.Set("Authorization", "Bearer "+t.token)
	}
	response, err := t.next.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the answer: %w", err)
	case len(answer) > maxAnswer:
		return nil, fmt.Errorf("the answer is over %d bytes", maxAnswer)
	case response.StatusCode < 300 && len(answer) > 0 && !json.Valid(answer):
		return nil, fmt.Errorf("the answer is not JSON (%s)", text.Cut(shown.Line(cmp.Or(response.Header.Get("Content-Type"), "of no type")), maxCell))
	}
	if response.StatusCode < 300 {
		// The client would refuse the next request by itself; this one waits.
		response.Header.Del("X-Ratelimit-Reset")
	}
	response.Body = io.NopCloser(bytes.NewReader(answer))
	response.Request = request
	return response, nil
}

// retryAfter says whether and when to try again after an answer:
// https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
func retryAfter(response *http.Response, err error, try int) (time.Duration, bool) {
	growing := func(first time.Duration) time.Duration {
		d := first << (try - 1)
		return d + time.Duration(rand.Int64N(int64(d)/4+1))
	}
	if err != nil {
		return growing(pause), !errors.Is(err, context.Canceled)
	}
	refused := response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusTooManyRequests
	switch {
	case refused && response.Header.Get("Retry-After") != "":
		seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
		wait := time.Duration(seconds) * time.Second
		return wait, err == nil && seconds >= 0 && seconds <= int(longestPause/time.Second)
	case refused && response.Header.Get("X-RateLimit-Remaining") == "0":
		reset, err := strconv.ParseInt(response.Header.Get("X-RateLimit-Reset"), 10, 64)
		wait := max(time.Until(time.Unix(reset, 0)), 0) + time.Second
		return wait, err == nil && wait <= longestPause
	case limited(response):
		wait := growing(secondaryPause)
		return wait, wait <= longestPause
	case response.StatusCode >= 500:
		return growing(pause), true
	}
	return 0, false
}

// limited reports whether an answer speaks of a rate limit.
func limited(response *http.Response) bool {
	switch response.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		answer, _ := io.ReadAll(response.Body)
		response.Body = io.NopCloser(bytes.NewReader(answer))
		return response.Header.Get("Retry-After") != "" || bytes.Contains(answer, []byte("rate limit")) || bytes.Contains(answer, []byte("abuse detection"))
	}
	return false
}
