package github

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/githubtest"
)

const (
	headA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	headB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	// The longest that a request takes each way. A look and the write after it are
	// so less than [DefaultSettle] apart.
	longest = 900 * time.Millisecond
)

var pr7 = PullRequest{Owner: "o", Repo: "r", Number: 7}

// stage is a server with a pull request, and somebody who posts there. All time
// on it is that of a synctest bubble.
type stage struct {
	*githubtest.Server
	t    *testing.T
	told narration
}

// narration is what several posters say.
type narration struct {
	mu   sync.Mutex
	text strings.Builder
}

func (n *narration) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

// onStage runs a test in a bubble.
func onStage(t *testing.T, test func(t *testing.T, s *stage)) {
	t.Helper()
	_, _ = githubtest.Describe() // not in the bubble: it takes real time; the server says where it fails
	synctest.Test(t, func(t *testing.T) {
		s := &stage{Server: githubtest.New(t), t: t}
		s.AddToken("secret", githubtest.WorkflowToken)
		s.SetPull(githubtest.Pull{Repo: "o/r", Number: 7, Head: headA, HeadRepo: "o/r", HeadBranch: "topic"})
		test(t, s)
	})
}

func (s *stage) poster(token string) *Poster {
	s.t.Helper()
	transport := &githubtest.Transport{Handler: s.Server, Latency: func() time.Duration {
		if rand.IntN(4) > 0 {
			return rand.N(longest / 20)
		}
		return rand.N(longest)
	}}
	client, err := newClient("https://api.github.example"+s.Prefix, token, "test", &s.told, transport)
	if err != nil {
		s.t.Fatal(err)
	}
	return &Poster{Client: client, Author: ActionsBot, Settle: DefaultSettle, Narration: &s.told}
}

func marked(run uint64, attempt int) Marker {
	return Marker{ID: "readiness", Head: headA, Run: run, Attempt: attempt}
}

// post posts as a workflow does.
func (s *stage) post(m Marker, body string) (Done, error) {
	done, page, err := s.poster("secret").Post(s.t.Context(), pr7, m, body)
	if (page == "") != (err != nil || done == doneMoved || done == doneLocked) {
		s.t.Errorf("%s, %v: the comment's page is %q", done, err, page)
	}
	return done, err
}

// wants fails unless posting ends so, with these comments.
func (s *stage) wants(m Marker, body string, want Done, comments ...string) {
	s.t.Helper()
	done, err := s.post(m, body)
	if err != nil || done != want {
		s.t.Errorf("posting %q: %q, %v; want %q", body, done, err, want)
	}
	s.has(comments...)
}

// has fails unless the pull request has comments with these bodies, without
// their markers.
func (s *stage) has(want ...string) {
	s.t.Helper()
	var got []string
	for _, c := range s.Comments("o/r", 7) {
		body := c.Body
		if _, ok := parseMarker(body); ok {
			_, body, _ = strings.Cut(body, "\n")
		}
		got = append(got, body)
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("the comments are %q, and should be %q", got, want)
	}
}

// once answers the first request of a kind with a fault.
func once(method, part string, fault githubtest.Fault) func(*http.Request) *githubtest.Fault {
	return times(1, method, part, fault)
}

func times(n int, method, part string, fault githubtest.Fault) func(*http.Request) *githubtest.Fault {
	var mu sync.Mutex
	return func(r *http.Request) *githubtest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if n == 0 || r.Method != method || !strings.Contains(r.URL.Path, part) {
			return nil
		}
		n--
		return &fault
	}
}

func TestACommentIsKeptUpToDate(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.AddComment("o/r", 7, "somebody", "hello")
		s.wants(marked(1, 1), "first", doneCreated, "hello", "first")
		s.wants(marked(1, 1), "first", doneUnchanged, "hello", "first")
		s.wants(marked(1, 2), "rerun", doneUpdated, "hello", "rerun")
		s.wants(marked(1, 1), "first", doneSuperseded, "hello", "rerun")
		s.wants(marked(3, 1), "third", doneUpdated, "hello", "third")
		s.wants(marked(2, 9), "second", doneSuperseded, "hello", "third")
		other := marked(1, 1)
		other.ID = "nightly"
		s.wants(other, "nightly", doneCreated, "hello", "third", "nightly")
		if c := s.Comments("o/r", 7)[1]; c.Changed != 2 {
			t.Errorf("the comment was changed %d times, and should be twice", c.Changed)
		}
	})
}

func TestAnUnchangedCommentTakesOneRequest(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.wants(marked(1, 1), "first", doneCreated, "first")
		before := len(s.Requests())
		s.wants(marked(1, 1), "first", doneUnchanged, "first")
		if made := s.Requests()[before:]; len(made) != 1 {
			t.Errorf("it took %q", made)
		}
	})
}

func TestAPullRequestThatMovedOnIsLeftAlone(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.wants(marked(1, 1), "first", doneCreated, "first")
		s.SetPull(githubtest.Pull{Repo: "o/r", Number: 7, Head: headB, HeadRepo: "o/r", HeadBranch: "topic"})
		s.wants(marked(2, 1), "second", doneMoved, "first")
		m := marked(3, 1)
		m.Head = headB
		s.wants(m, "of the new head", doneUpdated, "of the new head")
	})
}

func TestAPullRequestIsForcePushedWhileTheWriteWaits(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		limit := once("POST", "comments", githubtest.Fault{Status: http.StatusForbidden, Header: http.Header{"Retry-After": {"60"}}, Body: `{"message": "You have exceeded a secondary rate limit"}`})
		s.Fault = func(r *http.Request) *githubtest.Fault {
			f := limit(r)
			if f != nil {
				s.SetPull(githubtest.Pull{Repo: "o/r", Number: 7, Head: headB, HeadRepo: "o/r", HeadBranch: "topic"})
			}
			return f
		}
		s.wants(marked(1, 1), "old", doneMoved)
	})
}

func TestAClosedPullRequestStillGetsItsResults(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.SetPull(githubtest.Pull{Repo: "o/r", Number: 7, Head: headA, HeadRepo: "o/r", HeadBranch: "topic", Closed: true})
		s.wants(marked(1, 1), "first", doneCreated, "first")
	})
}

func TestALockedConversationIsNoFailure(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		lock := githubtest.Pull{Repo: "o/r", Number: 7, Head: headA, HeadRepo: "o/r", HeadBranch: "topic", Locked: true}
		s.SetPull(lock)
		s.wants(marked(1, 1), "first", doneLocked)
		lock.Locked = false
		s.SetPull(lock)
		s.wants(marked(1, 1), "first", doneCreated, "first")
		lock.Locked = true
		s.SetPull(lock)
		s.wants(marked(2, 1), "second", doneLocked, "first")
	})
}

func TestCommentsOfOthersAreLeftAlone(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		forged := marked(1<<62, 1).String() + "forged"
		s.AddComment("o/r", 7, "mallory", forged)
		s.wants(marked(1, 1), "ours", doneCreated, "forged", "ours")
		s.wants(marked(2, 1), "newer", doneUpdated, "forged", "newer")
		if c := s.Comments("o/r", 7)[0]; c.Body != forged || c.Changed != 0 {
			t.Errorf("the comment of another was changed: %+v", c)
		}
	})
}

func TestAMarkerThatIsNotTheFirstLineIsNone(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		quoted := "look:\n" + marked(1<<62, 1).String() + "text"
		s.AddComment("o/r", 7, ActionsBot, quoted)
		s.wants(marked(1, 1), "ours", doneCreated, quoted, "ours")
		// A marker in what results say, as far as it would get.
		s.wants(marked(2, 1), "ours\n"+marked(1<<62, 1).String(), doneUpdated, quoted, "ours\n"+marked(1<<62, 1).String())
		s.wants(marked(3, 1), "third", doneUpdated, quoted, "third")
	})
}

func TestOursIsFoundBehindManyComments(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		for i := range 250 {
			s.AddComment("o/r", 7, "somebody", fmt.Sprint("talk ", i))
		}
		if done, err := s.post(marked(1, 1), "first"); done != doneCreated || err != nil {
			t.Errorf("%q, %v", done, err)
		}
		for range 120 {
			s.AddComment("o/r", 7, "somebody", "more talk")
		}
		if done, err := s.post(marked(2, 1), "second"); done != doneUpdated || err != nil {
			t.Errorf("%q, %v", done, err)
		}
		if all := s.Comments("o/r", 7); len(all) != 371 || !strings.HasSuffix(all[250].Body, "second") {
			t.Errorf("%d comments, and ours is %q", len(all), all[250].Body)
		}
	})
}

func TestCommentsThatAreThereTwiceBecomeOne(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.AddComment("o/r", 7, ActionsBot, marked(1, 1).String()+"old")
		s.AddComment("o/r", 7, ActionsBot, marked(5, 1).String()+"newest")
		s.AddComment("o/r", 7, ActionsBot, marked(5, 1).String()+"newest, again")
		s.wants(marked(4, 1), "older", doneSuperseded, "newest")
		s.wants(marked(6, 1), "now", doneUpdated, "now")
	})
}

// Whatever happens to one request, the comment is there once, and is told to be
// what it is.
func TestFaultsThatPass(t *testing.T) {
	html := githubtest.Fault{Status: http.StatusBadGateway, Header: http.Header{"Content-Type": {"text/html"}}, Body: "<html>Unicorn!</html>"}
	after := func(f githubtest.Fault) githubtest.Fault { f.After = true; return f }
	limit := func(status int, header ...string) githubtest.Fault {
		f := githubtest.Fault{Status: status, Header: http.Header{}, Body: `{"message": "You have exceeded a secondary rate limit. Please wait a few minutes.", "documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`}
		for i := 0; i < len(header); i += 2 {
			f.Header.Set(header[i], header[i+1])
		}
		return f
	}
	for name, fault := range map[string]githubtest.Fault{
		"502, not done":         html,
		"502, done":             after(html),
		"500":                   {Status: http.StatusInternalServerError},
		"503":                   {Status: http.StatusServiceUnavailable, Body: `{"message": "Service unavailable"}`},
		"truncated, done":       {After: true},
		"truncated, not done":   {},
		"a page of a proxy":     {Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}}, Body: "<html>Sign in</html>"},
		"no answer":             {Hang: true},
		"no answer, done":       {Hang: true, After: true},
		"429":                   limit(http.StatusTooManyRequests),
		"429 with a time":       limit(http.StatusTooManyRequests, "Retry-After", "17"),
		"403 with a time":       limit(http.StatusForbidden, "Retry-After", "17"),
		"403 secondary":         limit(http.StatusForbidden),
		"primary limit, passes": {Status: http.StatusForbidden, Header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Limit": {"60"}, "X-Ratelimit-Reset": {"946684920"}}, Body: `{"message": "API rate limit exceeded"}`},
	} {
		for _, where := range []string{"GET comments", "GET pulls", "POST comments", "PATCH comments", "DELETE comments"} {
			t.Run(name+" at "+where, func(t *testing.T) {
				onStage(t, func(t *testing.T, s *stage) {
					method, part, _ := strings.Cut(where, " ")
					want := doneCreated
					switch method {
					case "PATCH":
						s.AddComment("o/r", 7, ActionsBot, marked(1, 1).String()+"old")
						want = doneUpdated
					case "DELETE":
						s.AddComment("o/r", 7, ActionsBot, marked(2, 1).String()+"new")
						s.AddComment("o/r", 7, ActionsBot, marked(1, 1).String()+"old")
						want = doneUnchanged
					}
					s.Fault = once(method, part, fault)
					began := time.Now()
					s.wants(marked(2, 1), "new", want, "new")
					if took := time.Since(began); took > 4*time.Minute {
						t.Errorf("it took %s", took)
					}
				})
			})
		}
	}
}

// synctest's clock begins at the start of the year 2000: 946684800.
func TestTheTimeThatALimitNamesIsWaited(t *testing.T) {
	for name, test := range map[string]struct {
		fault githubtest.Fault
		least time.Duration
	}{
		"Retry-After":       {githubtest.Fault{Status: http.StatusForbidden, Header: http.Header{"Retry-After": {"90"}}, Body: `{"message": "secondary rate limit"}`}, 90 * time.Second},
		"X-RateLimit-Reset": {githubtest.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"946684920"}}, Body: `{"message": "API rate limit exceeded"}`}, 120 * time.Second},
		"neither":           {githubtest.Fault{Status: http.StatusForbidden, Body: `{"message": "You have exceeded a secondary rate limit"}`}, time.Minute},
	} {
		for _, method := range []string{"GET", "POST"} {
			t.Run(name+" "+method, func(t *testing.T) {
				onStage(t, func(t *testing.T, s *stage) {
					s.Fault = once(method, "comments", test.fault)
					began := time.Now()
					s.wants(marked(1, 1), "first", doneCreated, "first")
					if took := time.Since(began); took < test.least || took > test.least+30*time.Second {
						t.Errorf("it took %s, and the limit is lifted after %s", took, test.least)
					}
					if told := s.told.text.String(); !strings.Contains(told, "GitHub: its rate limit is reached (4") || !strings.Contains(told, "trying again in 1m") && !strings.Contains(told, "trying again in 2m") {
						t.Errorf("it says %q", told)
					}
				})
			})
		}
	}
}

func TestALimitThatIsLiftedTooLateIsSaid(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.Fault = times(-1, "GET", "comments", githubtest.Fault{Status: http.StatusForbidden, Header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"946688400"}}, Body: `{"message": "API rate limit exceeded for 203.0.113.7"}`})
		began := time.Now()
		_, err := s.post(marked(1, 1), "first")
		if err == nil || !strings.Contains(err.Error(), "until 2000-01-01T01:00:00Z: try again then") || errors.Is(err, ErrPermission) {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it waited %s to say so", took)
		}
	})
}

// The last request that a limit allows says that none is left; what follows has
// to wait, and not to fail.
func TestTheLastRequestBeforeALimit(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.Fault = func(*http.Request) *githubtest.Fault { return nil }
		inner := &githubtest.Transport{Handler: s.Server}
		client, err := newClient("https://api.github.example", "secret", "test", io.Discard, roundTrip(func(r *http.Request) (*http.Response, error) {
			response, err := inner.RoundTrip(r)
			if err == nil {
				response.Header.Set("X-RateLimit-Limit", "60")
				response.Header.Set("X-RateLimit-Remaining", "0")
				response.Header.Set("X-RateLimit-Reset", "946684920")
			}
			return response, err
		}))
		if err != nil {
			t.Fatal(err)
		}
		done, _, err := (&Poster{Client: client, Author: ActionsBot, Narration: io.Discard}).Post(t.Context(), pr7, marked(1, 1), "first")
		if done != doneCreated || err != nil {
			t.Errorf("%q, %v", done, err)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestFaultsThatStay(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		fault  githubtest.Fault
		says   string
	}{
		"502":       {"GET", githubtest.Fault{Status: http.StatusBadGateway}, "listing the comments of o/r#7: GET https://api.github.example/repos/o/r/issues/7/comments?per_page=100: 502"},
		"502 write": {"POST", githubtest.Fault{Status: http.StatusBadGateway}, "commenting on o/r#7: POST https://api.github.example/repos/o/r/issues/7/comments: 502"},
		"HTML":      {"GET", githubtest.Fault{Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}}, Body: "<html>"}, "the answer is not JSON (text/html)"},
		"truncated": {"GET", githubtest.Fault{}, "reading the answer: unexpected EOF"},
		"no answer": {"GET", githubtest.Fault{Hang: true}, "context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				s.Fault = times(-1, test.method, "comments", test.fault)
				if _, err := s.post(marked(1, 1), "first"); err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

func TestPermissionsAreNamed(t *testing.T) {
	for name, test := range map[string]struct {
		token  githubtest.Token
		secret string
		says   string
	}{
		"a read-only workflow":  {githubtest.Token{Login: ActionsBot, Installation: true}, "secret", `commenting on o/r#7: the token has no permission (403 Resource not accessible by integration): it needs "pull-requests: write"`},
		"a read-only person":    {githubtest.Token{Login: "somebody"}, "secret", `(403 Resource not accessible by personal access token): it needs "pull-requests: write"`},
		"a token of nobody":     {githubtest.WorkflowToken, "other", "GitHub does not know it (401 Bad credentials): give one that is valid"},
		"no token in the first": {githubtest.WorkflowToken, "", "(401 Requires authentication)"},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				s.AddToken("secret", test.token)
				_, _, err := s.poster(test.secret).Post(t.Context(), pr7, marked(1, 1), "first")
				if !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
					t.Errorf("%v", err)
				}
			})
		})
	}
	onStage(t, func(t *testing.T, s *stage) {
		_, _, err := s.poster("secret").Post(t.Context(), PullRequest{"o", "r", 8}, marked(1, 1), "first")
		if err == nil || !strings.Contains(err.Error(), "o/r#8: it is not there") {
			t.Errorf("a pull request that is not there: %v", err)
		}
	})
}

func TestACommentThatIsRemovedMeanwhileIsMadeAnew(t *testing.T) {
	for _, method := range []string{"PATCH", "GET"} {
		onStage(t, func(t *testing.T, s *stage) {
			id := s.AddComment("o/r", 7, ActionsBot, marked(1, 1).String()+"old")
			s.Fault = func(r *http.Request) *githubtest.Fault {
				if r.Method == method && strings.Contains(r.URL.Path, "comments/") {
					s.RemoveComment(id)
				}
				return nil
			}
			s.wants(marked(2, 1), "new", doneCreated, "new")
		})
	}
}

// A token whose login is not known finds its comments all the same, from the
// first one on.
func TestTheAuthorIsLearned(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.AddToken("secret", githubtest.Token{Login: "readiness-app[bot]", Access: githubtest.Write, Installation: true})
		s.wants(marked(1, 1), "first", doneCreated, "first")
		s.wants(marked(2, 1), "second", doneCreated, "second")
	})
	onStage(t, func(t *testing.T, s *stage) {
		for token, want := range map[githubtest.Token]string{{Login: "somebody"}: "somebody", githubtest.WorkflowToken: ActionsBot} {
			s.AddToken("secret", token)
			if got, err := Author(t.Context(), s.poster("secret").Client); got != want || err != nil {
				t.Errorf("the author is %q, %v; want %q", got, err, want)
			}
		}
		if _, err := Author(t.Context(), s.poster("other").Client); !errors.Is(err, ErrPermission) {
			t.Errorf("a token of nobody: %v", err)
		}
	})
}

func TestListsThatLagMakeNoSecondComment(t *testing.T) {
	for lag := range 4 {
		onStage(t, func(t *testing.T, s *stage) {
			s.Lag = lag
			s.wants(marked(1, 1), "first", doneCreated, "first")
			for _, r := range s.Requests() {
				if strings.HasPrefix(r, "DELETE") {
					t.Errorf("with a lag of %d there was a second comment meanwhile", lag)
				}
			}
		})
	}
}

func TestAGitHubEnterpriseServer(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.Prefix = "/api/v3"
		s.wants(marked(1, 1), "first", doneCreated, "first")
		s.wants(marked(2, 1), "second", doneUpdated, "second")
	})
}

func TestAddressesOfAnAPI(t *testing.T) {
	for _, bad := range []string{"", "api.github.com", "ftp://api.github.com", "https://", "https://user:password@host", "https://ho st"} {
		if _, err := NewClient(bad, "", "", io.Discard); err == nil || !strings.Contains(err.Error(), DefaultAPI) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestACommentThatIsTooLongIsNotSent(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		if _, err := s.post(marked(1, 1), strings.Repeat("x", MaxComment)); err == nil || len(s.Requests()) > 0 {
			t.Errorf("%v, after %q", err, s.Requests())
		}
		m := marked(1, 1)
		if done, err := s.post(m, strings.Repeat("x", MaxComment-len(m.String()))); done != doneCreated || err != nil {
			t.Errorf("one that just fits: %q, %v", done, err)
		}
	})
}

func TestPostingObeysItsContext(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.Fault = times(-1, "POST", "comments", githubtest.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"500"}}})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		_, _, err := s.poster("secret").Post(ctx, pr7, marked(1, 1), "first")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 6*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// Posters that run at the same moment, with requests that take up to a second in
// all, end in one comment with the newest results; whatever was there before, and
// also when the server answers some requests with errors or lists late.
func TestManyPostersAtOnce(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	for round := range rounds {
		onStage(t, func(t *testing.T, s *stage) {
			random := rand.New(rand.NewPCG(uint64(round), 7))
			posters := 2 + random.IntN(7)
			newest := marked(0, 0)
			for range random.IntN(3) {
				m := marked(uint64(random.IntN(4)), 1)
				s.AddComment("o/r", 7, ActionsBot, m.String()+"before")
				if m.compare(newest) > 0 {
					newest = m
				}
			}
			s.Lag = random.IntN(2)
			faulty := random.IntN(3) == 0
			var mu sync.Mutex
			s.Fault = func(*http.Request) *githubtest.Fault {
				mu.Lock()
				defer mu.Unlock()
				if faulty && random.IntN(10) == 0 {
					return &githubtest.Fault{Status: http.StatusBadGateway, After: random.IntN(2) == 0}
				}
				return nil
			}
			markers := make([]Marker, posters)
			for i := range markers {
				markers[i] = marked(uint64(1+random.IntN(5)), 1+random.IntN(2))
				if markers[i].compare(newest) > 0 {
					newest = markers[i]
				}
			}
			var group sync.WaitGroup
			for i, m := range markers {
				delay := rand.N(longest)
				group.Go(func() {
					time.Sleep(delay)
					if _, err := s.post(m, fmt.Sprintf("%d/%d of %d", m.Run, m.Attempt, i)); err != nil {
						t.Errorf("round %d: %v", round, err)
					}
				})
			}
			group.Wait()
			all := s.Comments("o/r", 7)
			if len(all) != 1 {
				t.Fatalf("round %d: %d comments are left: %+v", round, len(all), all)
			}
			if got, _ := parseMarker(all[0].Body); got != newest {
				t.Fatalf("round %d: the comment tells %+v, and the newest is %+v", round, got, newest)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		for n, p := range []githubtest.Pull{
			{Head: headA, HeadRepo: "fork/r", HeadBranch: "topic"},
			{Head: headB, HeadRepo: "fork/r", HeadBranch: "topic"},                // of another commit
			{Head: headA, HeadRepo: "fork/other", HeadBranch: "topic"},            // of another repository of the same owner
			{Head: headA, HeadRepo: "fork/r", HeadBranch: "topic", Closed: true},  //
			{Head: headA, HeadRepo: "", HeadBranch: "topic"},                      // of a fork that is gone
			{Head: headA, HeadRepo: "Fork/R", HeadBranch: "topic"},                // the other base
			{Head: headA, HeadRepo: "fork/r", HeadBranch: "a b&state=all#x/../ü"}, //
			{Head: headA, HeadRepo: "o/r", HeadBranch: "topic"},
		} {
			p.Repo, p.Number = "o/r", 20+n
			s.SetPull(p)
		}
		resolve := func(headRepo, branch string) []int {
			found, _, err := Resolve(t.Context(), s.poster("secret").Client, "o", "r", headRepo, branch, headA)
			if err != nil {
				t.Error(err)
			}
			var numbers []int
			for _, pr := range found {
				numbers = append(numbers, pr.Number)
			}
			return numbers
		}
		for _, test := range []struct {
			repo, branch string
			want         []int
		}{
			{"fork/r", "topic", []int{20}}, {"fork/r", "a b&state=all#x/../ü", []int{26}}, {"fork/r", "other", nil}, {"o/r", "topic", []int{7, 27}}, {"", "topic", nil}, {"nobody/r", "topic", nil},
		} {
			if got := resolve(test.repo, test.branch); !slices.Equal(got, test.want) {
				t.Errorf("%s of %s: %v, want %v", test.branch, test.repo, got, test.want)
			}
		}
		for n := range 230 {
			s.SetPull(githubtest.Pull{Repo: "o/r", Number: 100 + n, Head: headB, HeadRepo: "many/r", HeadBranch: "topic"})
		}
		s.SetPull(githubtest.Pull{Repo: "o/r", Number: 400, Head: headA, HeadRepo: "many/r", HeadBranch: "topic"})
		if got := resolve("many/r", "topic"); !slices.Equal(got, []int{400}) {
			t.Errorf("behind many: %v", got)
		}
	})
}
