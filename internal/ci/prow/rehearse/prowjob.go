package rehearse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	prowapi "sigs.k8s.io/prow/pkg/apis/prowjobs/v1"
	"sigs.k8s.io/prow/pkg/clonerefs"
	"sigs.k8s.io/prow/pkg/kube"
	"sigs.k8s.io/prow/pkg/pjutil"
)

// Refs say what a presubmit or postsubmit tests. What is "" or 0 is taken from
// the working copy, if there is one.
type Refs struct {
	// Text is what Prow puts into $PULL_REFS: "main:SHA,12:SHA". It stands for
	// all other fields.
	Text             string
	Pull             int
	BaseRef, BaseSHA string
	PullSHA          string
}

// errRefs says that what is to be tested is not named, or wrongly.
var errRefs = errors.New("what the job tests is not known")

// resolve makes Prow's refs of a job in repository "org/repo". dir is a working
// copy.
func (r Refs) resolve(ctx context.Context, j *Job, dir string) (prowapi.Refs, error) {
	org, repo, ok := cutRepository(j.Repository)
	if !ok {
		return prowapi.Refs{}, fmt.Errorf("%w: %s is a job of %q, which is an organisation, not a repository: name one with --repo", errRefs, j.Name, j.Repository)
	}
	text := r.Text
	if text == "" {
		git := func(args ...string) string {
			out, err := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...).Output()
			if err != nil {
				return ""
			}
			return strings.TrimSpace(string(out))
		}
		base := cmp.Or(r.BaseRef, firstLiteral(j.brancher().Branches), "main")
		head := git("rev-parse", "--verify", "-q", "HEAD")
		baseSHA := r.BaseSHA
		for _, upstream := range []string{"upstream/" + base, "origin/" + base, base} {
			if baseSHA == "" {
				baseSHA = git("merge-base", "HEAD", upstream)
			}
		}
		baseSHA = cmp.Or(baseSHA, head)
		pullSHA := cmp.Or(r.PullSHA, head)
		if baseSHA == "" || pullSHA == "" && j.presubmit != nil {
			return prowapi.Refs{}, fmt.Errorf("%w: %s is not a working copy of git: name it with --refs, as Prow's $PULL_REFS has it: %s:SHA,%d:SHA", errRefs, dir, base, max(r.Pull, 1))
		}
		text = base + ":" + baseSHA
		if j.presubmit != nil {
			text += "," + strconv.Itoa(max(r.Pull, 1)) + ":" + pullSHA
		}
	}
	refs, err := clonerefs.ParseRefs(org + "," + repo + "=" + text)
	if err != nil {
		return prowapi.Refs{}, fmt.Errorf("--refs: %w; Prow's $PULL_REFS looks like main:SHA,12:SHA", err)
	}
	switch {
	case j.presubmit != nil && len(refs.Pulls) == 0:
		return prowapi.Refs{}, fmt.Errorf("%w: %s is a presubmit, and --refs %s names no pull request: say %s,NUMBER:SHA", errRefs, j.Name, text, text)
	case j.postsubmit != nil && len(refs.Pulls) > 0:
		return prowapi.Refs{}, fmt.Errorf("%w: %s is a postsubmit, and --refs %s names a pull request: leave it out", errRefs, j.Name, text)
	case !j.brancher().ShouldRun(refs.BaseRef):
		return prowapi.Refs{}, fmt.Errorf("%w: %s does not run on branch %s; it is a job %s", errRefs, j.Name, refs.BaseRef, j.where())
	}
	for i := range refs.Pulls {
		refs.Pulls[i].Author = "rehearsal"
	}
	return *refs, nil
}

// firstLiteral returns the first of some expressions that is a plain name.
func firstLiteral(expressions []string) string {
	for _, e := range expressions {
		e = strings.TrimSuffix(strings.TrimPrefix(e, "^"), "$")
		if !strings.ContainsAny(e, `\^$*+?()[]{}|.`) {
			return e
		}
	}
	return ""
}

// cutRepository takes "org/repo" apart; the organisation may be a URL, as
// Gerrit's are.
func cutRepository(name string) (org, repo string, ok bool) {
	i := strings.LastIndex(name, "/")
	if i < 0 {
		return "", "", false
	}
	return name[:i], name[i+1:], i > 0 && i < len(name)-1
}

// ProwJob makes what Prow would make of a job, with a build id of its own. dir is
// a working copy from which refs are completed.
func (j *Job) ProwJob(ctx context.Context, refs Refs, dir string) (*prowapi.ProwJob, error) {
	var spec prowapi.ProwJobSpec
	if j.periodic != nil {
		if refs != (Refs{}) {
			return nil, fmt.Errorf("%w: %s is periodic, and tests no pull request or branch: leave --refs, --pull and the like out", errRefs, j.Name)
		}
		spec = pjutil.PeriodicSpec(*j.periodic)
	} else {
		r, err := refs.resolve(ctx, j, dir)
		if err != nil {
			return nil, err
		}
		if j.presubmit != nil {
			spec = pjutil.PresubmitSpec(*j.presubmit, r)
		} else {
			spec = pjutil.PostsubmitSpec(*j.postsubmit, r)
		}
	}
	base := j.base()
	pj := pjutil.NewProwJob(spec, base.Labels, base.Annotations)
	if err := number(&pj); err != nil {
		return nil, err
	}
	return &pj, nil
}

// number gives a ProwJob the build id that Prow's controller would give it.
func number(pj *prowapi.ProwJob) error {
	if pj.Status.BuildID != "" {
		return nil
	}
	id, err := pjutil.GetBuildID(pj.Spec.Job, "")
	if err != nil {
		return fmt.Errorf("making a build id: %w", err)
	}
	pj.Status.BuildID = id
	if pj.Labels == nil {
		pj.Labels = map[string]string{}
	}
	pj.Labels[kube.ProwBuildIDLabel] = id
	return nil
}
