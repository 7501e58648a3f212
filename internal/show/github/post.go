package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// PullRequest names a pull request.
type PullRequest struct {
	Owner, Repo string
	Number      int
}

// String is the pull request as GitHub writes it: "owner/repo#7".
func (p PullRequest) String() string { return fmt.Sprintf("%s/%s#%d", p.Owner, p.Repo, p.Number) }

// Poster keeps the comments of one author.
type Poster struct {
	Client *API
	// Author is the login whose comments are looked at, see [Author]; anybody can
	// write a comment that begins with a marker. Where GitHub says at the first
	// comment that the token's login is another, that one counts.
	Author string
	// Narration is told of each wait.
	Narration io.Writer
	// OpenOnly leaves pull requests alone that are closed by now.
	OpenOnly bool
	// UpdateOnly leaves pull requests alone that have no such comment yet.
	UpdateOnly bool
	// Settle is how long to wait after a write before looking whether somebody
	// else wrote at the same moment.
	Settle time.Duration
}

// ActionsBot is the author of what a workflow's own token writes.
const ActionsBot = "github-actions[bot]"

// DefaultSettle is longer than a write to GitHub usually takes.
const DefaultSettle = 2 * time.Second

// Author asks GitHub whose token the client has. A token that may not ask is
// that of a workflow.
func Author(ctx context.Context, client *API) (string, error) {
	user, response, err := client.Users.Get(ctx, "")
	if response != nil && (response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusNotFound) {
		return ActionsBot, nil
	}
	if err != nil {
		return "", explain("asking whose token it is", "a token", err)
	}
	return user.GetLogin(), nil
}

// Done says what [Poster.Post] did.
type Done string

// What may have been done with a comment.
const (
	doneCreated   Done = "created"
	doneUpdated   Done = "updated"
	doneUnchanged Done = "unchanged"
	// doneSuperseded says that the comment tells newer results already.
	doneSuperseded Done = "left alone: it shows newer results"
	// doneMoved says that the pull request has another head by now.
	doneMoved Done = "not written: the pull request has another head by now"
	// doneClosed says that the pull request is closed by now.
	doneClosed Done = "not written: the pull request is closed by now"
	// doneAbsent says that there is no comment to update.
	doneAbsent Done = "not written: there is none to update"
	// doneLocked says that the conversation is locked for the token's owner.
	doneLocked Done = "not written: the conversation is locked"
)

// ErrPermission says that the token must not do what was asked.
var ErrPermission = errors.New("the token has no permission")

// changes is how many writes a comment takes at most, those included that repair
// what others wrote.
const changes = 10

// Post makes the one comment of the pull request with the marker's ID say body,
// of at most [MaxComment] bytes with the marker's line, and returns what it did
// and the comment's page. A comment that tells newer results stays as it is, and
// nothing is written when the head of the pull request is not the marker's.
//
// When several write at once, one comment is left in the end, with the newest
// results. GitHub has no write that depends on what is there, so each writer
// looks right before it writes, and again once all that were under way have
// arrived ([Poster.Settle]); whoever finds older results then writes again.
func (p *Poster) Post(ctx context.Context, pr PullRequest, marker Marker, body string) (Done, string, error) {
	text := marker.String() + body
	if len(text) > MaxComment {
		return "", "", fmt.Errorf("the comment has %d bytes, and GitHub takes %d", len(text), MaxComment)
	}
	w := &writing{Poster: *p, pr: pr, marker: marker, text: text, done: doneUnchanged, known: map[int64]comment{}, wrote: map[int64]bool{}, gone: map[int64]bool{}}
	page, err := w.run(ctx)
	switch {
	case errors.Is(err, errMoved):
		return doneMoved, "", nil
	case errors.Is(err, errClosed):
		return doneClosed, "", nil
	case errors.Is(err, errLocked):
		return doneLocked, "", nil
	case err != nil:
		return "", "", err
	}
	return w.done, page, nil
}

// comment is one that carries our marker.
type comment struct {
	id      int64
	marker  Marker
	body    string
	url     string
	updated time.Time
}

// writing is one call of [Poster.Post].
type writing struct {
	Poster
	pr     PullRequest
	marker Marker
	text   string
	done   Done
	// GitHub's lists may lag behind: known are comments as they were seen alone,
	// and gone those that were seen to be removed.
	known map[int64]comment
	gone  map[int64]bool
	// wrote are the comments that this call wrote, and tried is what it would
	// have done if a write arrived that seemed to fail.
	wrote map[int64]bool
	tried Done
	// unsettled says that something was written since the last look at all.
	unsettled bool
	failed    int
}

var (
	errMoved  = errors.New("the pull request has another head")
	errClosed = errors.New("the pull request is closed")
	errLocked = errors.New("the conversation is locked")
)

// run looks and writes, until a look finds what it should.
func (w *writing) run(ctx context.Context) (page string, err error) {
	for writes := 0; ; {
		own, err := w.own(ctx)
		if err != nil {
			return "", err
		}
		act := w.next(own)
		if act == nil {
			if w.done == doneAbsent {
				return "", nil
			}
			if w.done == doneSuperseded || !w.unsettled {
				return own[0].url, nil
			}
			w.unsettled = false
			if err := sleep(ctx, w.Settle); err != nil {
				return "", err
			}
			continue
		}
		if writes++; writes > changes {
			return "", fmt.Errorf("the comment on %s was changed by somebody else %d times meanwhile: are two workflows writing it? Give each its own --comment-id", w.pr, changes)
		}
		if err := w.unmoved(ctx); err != nil {
			return "", err
		}
		if err := w.write(ctx, act); err != nil {
			return "", err
		}
	}
}

// next is what there is to write, given our comments as they are now, the one to
// keep first; nil for nothing.
func (w *writing) next(own []comment) func(context.Context) (*github.Response, error) {
	if len(own) == 0 {
		if w.UpdateOnly {
			w.done = doneAbsent
			return nil
		}
		return w.create
	}
	keep := own[0]
	if len(own) > 1 {
		return func(ctx context.Context) (*github.Response, error) { return w.remove(ctx, own[1].id) }
	}
	switch order := keep.marker.compare(w.marker); {
	case order > 0:
		w.done = doneSuperseded
		return nil
	case keep.body == w.text:
		if w.done == doneUnchanged && w.tried != "" {
			w.done = w.tried
		}
		return nil
	case order == 0 && w.wrote[keep.id]:
		// Somebody else wrote results of the same age over ours.
		return nil
	}
	return func(ctx context.Context) (*github.Response, error) { return w.update(ctx, keep) }
}

// write sends one request that writes. When it fails in a way that may pass, it
// waits as GitHub asks; what to write is then to be decided again, because the
// request may have been carried out, and others may have written.
func (w *writing) write(ctx context.Context, act func(context.Context) (*github.Response, error)) error {
	response, err := act(ctx)
	if err == nil {
		w.unsettled = true
		return nil
	}
	var answer *http.Response
	var network *url.Error
	failure := err
	if response != nil && response.Response != nil {
		answer, failure = response.Response, nil
	} else if !errors.As(err, &network) {
		return err
	}
	w.failed++
	wait, again := retryAfter(answer, failure, w.failed)
	if ctx.Err() != nil || !again || w.failed == tries {
		return err
	}
	w.unsettled = true
	tellWait(w.Narration, answer, failure, wait)
	return sleep(ctx, wait)
}

// unmoved returns an error when the pull request has another head, or is closed
// where that matters.
func (w *writing) unmoved(ctx context.Context) error {
	got, _, err := w.Client.PullRequests.Get(ctx, w.pr.Owner, w.pr.Repo, w.pr.Number)
	if err != nil {
		return explain("reading "+w.pr.String(), "pull-requests: read", err)
	}
	switch {
	case got.GetHead().GetSHA() != w.marker.Head:
		return errMoved
	case w.OpenOnly && got.GetState() != "open":
		return errClosed
	}
	return nil
}

// own lists the author's comments with our id: the one to keep first, which
// tells the newest results, and of those is the oldest.
func (w *writing) own(ctx context.Context) ([]comment, error) {
	var found []comment
	seen := map[int64]bool{}
	options := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 100}}
	for {
		page, response, err := w.Client.Issues.ListComments(ctx, w.pr.Owner, w.pr.Repo, w.pr.Number, options)
		if err != nil {
			return nil, explain("listing the comments of "+w.pr.String(), "pull-requests: read", err)
		}
		for _, c := range page {
			own, ok := w.read(c)
			if seen[own.id] || !ok || w.gone[own.id] {
				continue
			}
			seen[own.id] = true
			if known, ok := w.known[own.id]; ok && own.updated.Before(known.updated) {
				own = known
			}
			found = append(found, own)
		}
		if response.NextPage == 0 {
			break
		}
		options.Page = response.NextPage
	}
	for id := range w.known {
		if seen[id] || w.gone[id] {
			continue
		}
		own, ok, err := w.alone(ctx, id)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, own)
		}
	}
	slices.SortFunc(found, func(a, b comment) int {
		return cmp.Or(b.marker.compare(a.marker), cmp.Compare(a.id, b.id))
	})
	return found, nil
}

// alone reads one comment, which is newer than what a list may say. It reports
// whether there is such a comment of ours.
func (w *writing) alone(ctx context.Context, id int64) (comment, bool, error) {
	c, response, err := w.Client.Issues.GetComment(ctx, w.pr.Owner, w.pr.Repo, id)
	if response != nil && response.StatusCode == http.StatusNotFound {
		w.gone[id] = true
		return comment{}, false, nil
	}
	if err != nil {
		return comment{}, false, explain("reading the comment on "+w.pr.String(), "pull-requests: read", err)
	}
	own, ok := w.read(c)
	if ok {
		w.known[id] = own
	} else {
		w.gone[id] = true // somebody made another of it
	}
	return own, ok, nil
}

// read tells whether a comment is one of the author's with our id.
func (w *writing) read(c *github.IssueComment) (comment, bool) {
	m, ok := parseMarker(c.GetBody())
	own := comment{c.GetID(), m, c.GetBody(), c.GetHTMLURL(), c.GetUpdatedAt().Time}
	return own, ok && m.ID == w.marker.ID && strings.EqualFold(c.GetUser().GetLogin(), w.Author)
}

func (w *writing) create(ctx context.Context) (*github.Response, error) {
	w.tried = doneCreated
	c, response, err := w.Client.Issues.CreateComment(ctx, w.pr.Owner, w.pr.Repo, w.pr.Number, &github.IssueComment{Body: &w.text})
	if err != nil {
		return response, explain("commenting on "+w.pr.String(), "pull-requests: write", err)
	}
	if login := c.GetUser().GetLogin(); login != "" {
		w.Author = login
	}
	w.written(c)
	return response, nil
}

// written keeps what GitHub says was written.
func (w *writing) written(c *github.IssueComment) {
	if own, ok := w.read(c); ok {
		w.known[own.id], w.wrote[own.id] = own, true
	}
	if w.done == doneUnchanged {
		w.done = w.tried
	}
}

// update changes a comment, if it still is as the list said.
func (w *writing) update(ctx context.Context, keep comment) (*github.Response, error) {
	now, ok, err := w.alone(ctx, keep.id)
	if err != nil || !ok || now.body != keep.body {
		return nil, err
	}
	w.tried = cmp.Or(w.tried, doneUpdated)
	c, response, err := w.Client.Issues.EditComment(ctx, w.pr.Owner, w.pr.Repo, keep.id, &github.IssueComment{Body: &w.text})
	if response != nil && response.StatusCode == http.StatusNotFound {
		w.gone[keep.id] = true // somebody removed it meanwhile
		return response, nil
	}
	if err != nil {
		return response, explain("changing the comment on "+w.pr.String(), "pull-requests: write", err)
	}
	w.written(c)
	return response, nil
}

// remove removes a comment that is there twice.
func (w *writing) remove(ctx context.Context, id int64) (*github.Response, error) {
	response, err := w.Client.Issues.DeleteComment(ctx, w.pr.Owner, w.pr.Repo, id)
	if err != nil && (response == nil || response.StatusCode != http.StatusNotFound) {
		return response, explain("removing a comment on "+w.pr.String()+" that is there twice", "pull-requests: write", err)
	}
	w.gone[id] = true
	return response, nil
}

// Resolve returns the open pull requests of owner/repo whose head is commit in
// headRepo ("owner/name") on headBranch, as a workflow run names them: its own
// list of pull requests is empty for forks. Where there is none, why says how it
// comes, as far as GitHub tells.
func Resolve(ctx context.Context, client *API, owner, repo, headRepo, headBranch, commit string) (open []PullRequest, why string, err error) {
	why = fmt.Sprintf("no open pull request of %s/%s has %s of %s as its head", owner, repo, commit, text.Cut(cmp.Or(shown.Line(headRepo), "a repository that is gone"), maxCell))
	headOwner, _, ok := strings.Cut(headRepo, "/")
	if !ok || headBranch == "" {
		return nil, why, nil
	}
	options := &github.PullRequestListOptions{State: "open", Head: headOwner + ":" + headBranch, ListOptions: github.ListOptions{PerPage: 100}}
	for {
		page, response, err := client.PullRequests.List(ctx, owner, repo, options)
		if err != nil {
			return nil, "", explain(fmt.Sprintf("listing the pull requests of %s/%s", owner, repo), "pull-requests: read", err)
		}
		for _, pr := range page {
			named := PullRequest{owner, repo, pr.GetNumber()}
			switch same := pr.GetHead().GetSHA() == commit; {
			case !strings.EqualFold(pr.GetHead().GetRepo().GetFullName(), headRepo):
			case options.State == "open" && same:
				open = append(open, named)
			case options.State == "open":
				why = fmt.Sprintf("%s has another head by now than %s", named, commit)
			case pr.GetState() != "open" && same:
				return nil, fmt.Sprintf("%s is closed", named), nil
			}
		}
		switch {
		case options.State == "closed":
			return nil, why, nil // the newest ones are enough for a reason
		case response.NextPage != 0:
			options.Page = response.NextPage
		case len(open) > 0:
			return open, "", nil
		default:
			options.State, options.Page = "closed", 0
		}
	}
}

// explain says what was being done, and what permission that takes.
func explain(doing, permission string, err error) error {
	var limit *github.RateLimitError
	var secondary *github.AbuseRateLimitError
	var answer *github.ErrorResponse
	var network *url.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &limit):
		return fmt.Errorf("%s: GitHub's rate limit is reached, until %s: try again then", doing, limit.Rate.Reset.UTC().Format(time.RFC3339))
	case errors.As(err, &secondary):
		return fmt.Errorf("%s: GitHub's secondary rate limit is reached: try again later, with fewer requests at once", doing)
	case errors.As(err, &network) && !errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w: is that the address of GitHub's API (--api, $GITHUB_API_URL), and can it be reached? That of an Enterprise server ends with /api/v3", doing, err)
	case !errors.As(err, &answer) || answer.Response == nil:
		return fmt.Errorf("%s: %w", doing, err)
	}
	says := text.Cut(shown.Line(answer.Message), maxText)
	switch status := answer.Response.StatusCode; {
	case status == http.StatusUnauthorized:
		return fmt.Errorf("%s: %w: GitHub does not know it (401 %s): give one that is valid", doing, ErrPermission, says)
	case status == http.StatusForbidden && strings.Contains(says, "is locked"):
		return fmt.Errorf("%s: %w", doing, errLocked)
	case status == http.StatusForbidden && !limited(answer.Response):
		return fmt.Errorf("%s: %w (403 %s): it needs %q", doing, ErrPermission, says, permission)
	case status == http.StatusNotFound && says == "":
		return fmt.Errorf("%s: %w: GitHub's own answers say more: is that the address of its API (--api, $GITHUB_API_URL)? That of an Enterprise server ends with /api/v3", doing, err)
	case status == http.StatusNotFound:
		return fmt.Errorf("%s: it is not there, or %w to see it (404): look at the number, or give a token with %q", doing, ErrPermission, permission)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
