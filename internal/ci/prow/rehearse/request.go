package rehearse

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	prowapi "sigs.k8s.io/prow/pkg/apis/prowjobs/v1"
	"sigs.k8s.io/yaml"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

// Request names a job, and what it tests.
type Request struct {
	// ProwConfig is a file of Prow's own configuration, "" for a stand-in, and
	// JobConfig a file or folder of jobs.
	ProwConfig, JobConfig string
	// Job is the job's name, Repository its ORG/REPO where several have it.
	Job, Repository string
	Refs            Refs
	// Dir is the working copy.
	Dir string
}

// ProwJob makes the ProwJob that Prow would. What is wrong with what was asked for
// is a [verdict.UsageError].
func (r *Request) ProwJob(ctx context.Context) (*prowapi.ProwJob, error) {
	c, err := loadJobs(r.ProwConfig, r.JobConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, verdict.UsageErrorf("--job-config: %w: name the file or folder of the jobs, or make them with 'op-readiness generate prow'", err)
	}
	if err != nil {
		return nil, verdict.UsageErrorf("--job-config: %w", err)
	}
	branch := r.Refs.BaseRef
	if r.Refs.Text != "" {
		branch = strings.FieldsFunc(r.Refs.Text+":", func(r rune) bool { return r == ':' || r == ',' })[0]
	}
	job, err := c.Find(r.Job, r.Repository, branch)
	if err != nil {
		return nil, verdict.UsageErrorf("%w", err)
	}
	pj, err := job.ProwJob(ctx, r.Refs, r.Dir)
	if errors.Is(err, errRefs) {
		err = verdict.UsageErrorf("%w", err)
	}
	return pj, err
}

// ReadProwJob reads a file with a ProwJob, as kubectl prints it. What is wrong with
// it is a [verdict.UsageError].
func ReadProwJob(file string) (*prowapi.ProwJob, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, verdict.UsageErrorf("--prowjob: %w", err)
	}
	pj := new(prowapi.ProwJob)
	if err := yaml.Unmarshal(data, pj); err != nil {
		return nil, verdict.UsageErrorf("--prowjob %s: %w: give it what 'kubectl get prowjob NAME -o yaml' prints", file, err)
	}
	if pj.Spec.Job == "" {
		return nil, verdict.UsageErrorf("--prowjob %s: it has no spec.job: give it what 'kubectl get prowjob NAME -o yaml' prints", file)
	}
	return pj, nil
}

// BucketURL is where Prow's sidecar uploads to: the URL of a bucket, or a folder as
// one. A folder of which Prow cannot read the URL is a [verdict.UsageError].
func BucketURL(name string) (string, error) {
	if !bucket.IsURL(name) {
		var err error
		if name, err = bucket.FileURL(name); err != nil {
			return "", verdict.UsageErrorf("--bucket: %w", err)
		}
	}
	at, err := bucket.ParseURL(name)
	if err != nil {
		return "", verdict.UsageErrorf("--bucket: %w", err)
	}
	name = strings.TrimSuffix(name, "/")
	if at.Scheme == bucket.File && name != bucket.File+"://"+filepath.ToSlash(at.Dir) {
		// Prow takes the path of such a URL as it stands.
		return "", verdict.UsageErrorf("--bucket: Prow cannot write to the folder %s, because of a character in its path: name another", at.Dir)
	}
	return name, nil
}

// MakesCluster reports whether a job makes its cluster itself. command is what runs
// in place of the job's own; "" is that.
func MakesCluster(pj *prowapi.ProwJob, command string) bool {
	return strings.Contains(commandOf(pj, command), "--cluster")
}

// NeedsCluster reports whether a job has to be given a cluster. A command in place
// of the job's that does not call op-readiness may do without.
func NeedsCluster(pj *prowapi.ProwJob, command string) bool {
	if command != "" && !strings.Contains(command, tool) {
		return false
	}
	return !MakesCluster(pj, command) && !strings.Contains(commandOf(pj, command), "--dry-run")
}

func commandOf(pj *prowapi.ProwJob, text string) string {
	if text == "" && pj.Spec.PodSpec != nil {
		for _, c := range pj.Spec.PodSpec.Containers {
			text += " " + strings.Join(append(slices.Clone(c.Command), c.Args...), " ")
		}
	}
	return text
}
