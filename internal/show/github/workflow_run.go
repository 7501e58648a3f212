package github

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// WorkflowRun is an attempt at a run of a workflow, as GitHub tells it.
type WorkflowRun struct {
	// Owner and Repo say where it ran.
	Owner, Repo string
	Run         uint64
	Attempt     int
	// Conclusion is what a run that is over came to: "success", "failure",
	// "cancelled", …; "" while it goes on.
	Conclusion string
	// Head is the commit that it was for, HeadRepo ("owner/name") and HeadBranch
	// where that came from. HeadRepo is "" where the fork is gone.
	Head, HeadRepo, HeadBranch string
	// Workflow is the workflow's file.
	Workflow string
	// URL is the page of the attempt; "" where GitHub tells none.
	URL string

	repoID, headRepoID int64
}

// String names the run: "run 16 of o/r".
func (w *WorkflowRun) String() string { return fmt.Sprintf("run %d of %s/%s", w.Run, w.Owner, w.Repo) }

// ReadWorkflowRun asks GitHub for an attempt at a run; for attempt 0, the newest.
func ReadWorkflowRun(ctx context.Context, client *API, owner, repo string, run uint64, attempt int) (*WorkflowRun, error) {
	path := fmt.Sprintf("repos/%s/%s/actions/runs/%d", url.PathEscape(owner), url.PathEscape(repo), run)
	if attempt > 0 {
		path += fmt.Sprintf("/attempts/%d", attempt)
	}
	request, err := client.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	type repository struct {
		ID       int64  `json:"id"`
		FullName string `json:"full_name"`
	}
	// go-github's own type knows no path.
	var answer struct {
		ID             uint64     `json:"id"`
		RunAttempt     int        `json:"run_attempt"`
		Status         string     `json:"status"`
		Conclusion     string     `json:"conclusion"`
		HeadSHA        string     `json:"head_sha"`
		HeadBranch     string     `json:"head_branch"`
		Path           string     `json:"path"`
		HTMLURL        string     `json:"html_url"`
		Repository     repository `json:"repository"`
		HeadRepository repository `json:"head_repository"`
	}
	doing := fmt.Sprintf("reading workflow run %d of %s/%s", run, owner, repo)
	if _, err := client.Do(ctx, request, &answer); err != nil {
		return nil, explain(doing, "actions: read", err)
	}
	w := &WorkflowRun{
		Owner: owner, Repo: repo, Run: run, Attempt: cmp.Or(attempt, answer.RunAttempt, 1),
		Head: answer.HeadSHA, HeadRepo: answer.HeadRepository.FullName, HeadBranch: answer.HeadBranch,
		Workflow: answer.Path, repoID: answer.Repository.ID, headRepoID: answer.HeadRepository.ID,
	}
	switch {
	case answer.ID != run || !strings.EqualFold(answer.Repository.FullName, owner+"/"+repo):
		return nil, fmt.Errorf("%s: GitHub answers with run %d of %q", doing, answer.ID, text.Cut(answer.Repository.FullName, maxCell))
	case ValidCommit(w.Head) != nil:
		return nil, fmt.Errorf("%s: GitHub names no commit of it", doing)
	}
	if answer.Status == "completed" {
		w.Conclusion = cmp.Or(answer.Conclusion, "no conclusion")
	}
	if ValidLink(answer.HTMLURL) {
		w.URL = fmt.Sprintf("%s/attempts/%d", answer.HTMLURL, w.Attempt)
	}
	return w, nil
}

// conclusion writes what a run came to.
func conclusion(s string) string {
	return "**" + plain(strings.ReplaceAll(s, "_", " "), maxCell) + "**"
}

// NoResults tells, as Markdown, of a run that left no results, whose workflow is
// reporter's.
func (w *WorkflowRun) NoResults(reporter string) string {
	text := "### ⚠️ Windows operational readiness: no results\n\n" +
		"The workflow run came to " + conclusion(w.Conclusion) + " and left no results. Nothing is known of this commit.\n\n" +
		"Commit " + inline(w.Head, maxCell)
	if w.URL != "" {
		text += " · " + link("workflow run", w.URL)
	}
	return text + "\n" + reportedBy(reporter)
}

// Artifact is one that holds merged results.
type Artifact struct {
	// Name is the artifact's, and Of what it says the results are of: a cell of a
	// matrix.
	Name, Of string
	// Attempt is the attempt of the run that uploaded it.
	Attempt int
	// Size is in bytes.
	Size    int64
	Expired bool
	Expires time.Time

	id     int64
	digest string
}

// artifactName is what the reusable workflow calls an artifact with merged
// results. A workflow that the pull request changed may upload anything else.
var artifactName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^op-readiness-([A-Za-z0-9][A-Za-z0-9._-]{0,79})-merged-attempt-([1-9][0-9]{0,8})$`)
})

const (
	// maxArtifactPages are of 100 artifacts each.
	maxArtifactPages = 20
	// maxCells is more than any matrix has.
	maxCells = 40
)

// Results lists the artifacts with merged results that the run has, the newest
// attempt for each name, up to the attempt that w is; sorted by name.
func (w *WorkflowRun) Results(ctx context.Context, client *API) ([]Artifact, error) {
	newest := map[string]Artifact{}
	options := &github.ListOptions{PerPage: 100}
	doing := fmt.Sprintf("listing the artifacts of %s", w)
	for pages := 1; ; pages++ {
		page, response, err := w.artifacts(ctx, client, options)
		if err != nil {
			return nil, explain(doing, "actions: read", err)
		}
		for _, a := range page {
			match := artifactName().FindStringSubmatch(a.GetName())
			if match == nil {
				continue
			}
			attempt, err := strconv.Atoi(match[2])
			if err != nil || attempt > w.Attempt {
				continue
			}
			if err := w.owns(&a.Artifact); err != nil {
				return nil, fmt.Errorf("%s: %w", doing, err)
			}
			found := Artifact{
				Name: a.GetName(), Of: match[1], Attempt: attempt, Size: a.GetSizeInBytes(),
				Expired: a.GetExpired(), Expires: a.GetExpiresAt().Time, id: a.GetID(), digest: a.Digest,
			}
			// Names are unique within a run; if they are not, the newer one counts.
			if old, ok := newest[found.Of]; !ok || cmp.Or(cmp.Compare(found.Attempt, old.Attempt), cmp.Compare(found.id, old.id)) > 0 {
				newest[found.Of] = found
			}
		}
		if response.NextPage == 0 {
			break
		}
		if pages == maxArtifactPages {
			return nil, fmt.Errorf("%s: there are more than %d, so which results are the newest is not known: upload fewer", doing, 100*maxArtifactPages)
		}
		options.Page = response.NextPage
	}
	if len(newest) > maxCells {
		return nil, fmt.Errorf("%s: %d of them hold merged results, and a comment takes %d: upload fewer", doing, len(newest), maxCells)
	}
	var out []Artifact
	for _, a := range newest {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Artifact) int { return cmp.Compare(a.Of, b.Of) })
	return out, nil
}

// artifact is one as GitHub tells it; go-github's own type knows no digest.
type artifact struct {
	github.Artifact
	Digest string `json:"digest"`
}

// artifacts asks for a page of the run's artifacts.
func (w *WorkflowRun) artifacts(ctx context.Context, client *API, options *github.ListOptions) ([]artifact, *github.Response, error) {
	path := fmt.Sprintf("repos/%s/%s/actions/runs/%d/artifacts?per_page=%d", url.PathEscape(w.Owner), url.PathEscape(w.Repo), w.Run, options.PerPage)
	if options.Page > 0 {
		path += fmt.Sprintf("&page=%d", options.Page)
	}
	request, err := client.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return nil, nil, err
	}
	var answer struct {
		Artifacts []artifact `json:"artifacts"`
	}
	response, err := client.Do(ctx, request, &answer)
	return answer.Artifacts, response, err
}

// owns returns an error when GitHub says that an artifact is of another run,
// commit or repository. What it does not say is not held against it.
func (w *WorkflowRun) owns(a *github.Artifact) error {
	run := a.GetWorkflowRun()
	for _, fact := range []struct {
		what      string
		got, want any
		known     bool
	}{
		{"run", run.GetID(), int64(w.Run), run.GetID() != 0},
		{"commit", run.GetHeadSHA(), w.Head, run.GetHeadSHA() != ""},
		{"the repository with id", run.GetRepositoryID(), w.repoID, run.GetRepositoryID() != 0 && w.repoID != 0},
		{"the head repository with id", run.GetHeadRepositoryID(), w.headRepoID, run.GetHeadRepositoryID() != 0 && w.headRepoID != 0},
	} {
		if fact.known && fact.got != fact.want {
			return fmt.Errorf("%s is of %s %v, and not of %v", a.GetName(), fact.what, fact.got, fact.want)
		}
	}
	return nil
}

// errExpired says that GitHub has removed an artifact.
var errExpired = errors.New("it has expired, and GitHub has removed it")

// downloadTimeout is for one try at one artifact.
const downloadTimeout = 5 * time.Minute

// Download writes an artifact's archive, of at most limit bytes, to an empty
// file. A try that fails is made again as [NewClient] says. The address that
// GitHub leads to is on another host, which never sees the token, and holds a
// signature that is never told. Where GitHub tells a checksum, the archive has it.
func (c *API) Download(ctx context.Context, run *WorkflowRun, artifact Artifact, to *os.File, limit int64) error {
	doing := fmt.Sprintf("downloading %s of %s", artifact.Name, run)
	if artifact.Size > limit {
		return fmt.Errorf("%s: %w: at most %d MiB are read", doing, errTooBig, limit>>20)
	}
	for try := 1; ; try++ {
		place, err := c.locate(ctx, run, artifact)
		if err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		status, header, err := c.fetch(ctx, place, artifact.digest, to, limit)
		switch {
		case errors.Is(err, errTooBig):
			return fmt.Errorf("%s: %w: at most %d MiB are read", doing, err, limit>>20)
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", doing, ctx.Err())
		case err == nil && status == http.StatusOK:
			return nil
		}
		failure := err
		if err == nil {
			failure = fmt.Errorf("%s answers %d", place.Host, status)
		}
		response := &http.Response{StatusCode: status, Header: header, Body: http.NoBody}
		if err == nil && status < 500 && !limited(response) {
			// A signature holds for a minute; the next one may be better.
			err = failure
		}
		wait, again := retryAfter(response, err, try)
		if !again || try == tries {
			return fmt.Errorf("%s: %w: run this again", doing, failure)
		}
		tellWait(c.narration, response, err, wait)
		if err := sleep(ctx, wait); err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
	}
}

// locate asks where an artifact is to be had.
func (c *API) locate(ctx context.Context, run *WorkflowRun, artifact Artifact) (*url.URL, error) {
	path := fmt.Sprintf("repos/%s/%s/actions/artifacts/%d/zip", url.PathEscape(run.Owner), url.PathEscape(run.Repo), artifact.id)
	request, err := c.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	client := c.Client.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(request.WithContext(ctx))
	if err != nil {
		return nil, explain("asking where it is", "actions: read", err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusGone:
		return nil, errExpired
	case response.StatusCode < 300:
		return nil, fmt.Errorf("GitHub answers %d, and does not say where it is", response.StatusCode)
	case response.StatusCode >= 400:
		return nil, explain("asking where it is", "actions: read", github.CheckResponse(response))
	}
	location := response.Header.Get("Location")
	place, err := request.URL.Parse(location)
	if err != nil || location == "" || !c.follows(place) {
		return nil, errors.New("GitHub does not lead to an address of https")
	}
	return place, nil
}

// follows reports whether an address may be read: by https, or as the API is.
func (c *API) follows(u *url.URL) bool {
	return u.User == nil && (u.Scheme == "https" || u.Scheme == "http" && c.BaseURL.Scheme == "http")
}

// maxRedirects is how often the host of an artifact may lead on.
const maxRedirects = 3

// fetch reads what is at an address, without a token, and returns status and
// header of the answer. Of answers other than 200 nothing is written. An error does
// not tell the address.
func (c *API) fetch(ctx context.Context, place *url.URL, digest string, to *os.File, limit int64) (int, http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, place.String(), nil)
	if err != nil {
		return 0, nil, fmt.Errorf("asking %s", place.Host)
	}
	request.Header.Set("User-Agent", c.UserAgent)
	client := &http.Client{Transport: c.next, CheckRedirect: func(next *http.Request, before []*http.Request) error {
		if len(before) > maxRedirects || !c.follows(next.URL) {
			return errors.New("it leads elsewhere")
		}
		return nil
	}}
	response, err := client.Do(request)
	if err != nil {
		var told *url.Error
		if errors.As(err, &told) {
			err = told.Err // without the address
		}
		return 0, nil, fmt.Errorf("asking %s: %w", place.Host, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.StatusCode, response.Header, nil
	}
	if err := c.keep(response.Body, digest, to, limit); err != nil {
		return 0, nil, fmt.Errorf("reading from %s: %w", place.Host, err)
	}
	return response.StatusCode, response.Header, nil
}

var errTooBig = errors.New("it is too big")

// keep writes what it reads to a file, in place of what is there.
func (c *API) keep(from io.Reader, digest string, to *os.File, limit int64) error {
	if _, err := to.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := to.Truncate(0); err != nil {
		return err
	}
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(from, limit+1))
	switch want, known := strings.CutPrefix(digest, "sha256:"); {
	case err != nil:
		return err
	case size > limit:
		return errTooBig
	case known && hex.EncodeToString(sum.Sum(nil)) != want:
		return fmt.Errorf("its checksum is %x, and GitHub says %s", sum.Sum(nil), text.Cut(shown.Line(want), maxCell))
	}
	return nil
}
