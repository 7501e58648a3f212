package rehearse

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	prowapi "sigs.k8s.io/prow/pkg/apis/prowjobs/v1"
	"sigs.k8s.io/prow/pkg/config"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// standIn is what there is of Prow's own configuration where none is given: what
// decoration needs.
const standIn = `plank:
  default_decoration_config_entries:
  - config:
      timeout: 2h
      grace_period: 15m
      utility_images:
        clonerefs: clonerefs
        initupload: initupload
        entrypoint: entrypoint
        sidecar: sidecar
      gcs_configuration:
        bucket: rehearsal
        path_strategy: explicit
`

// jobFiles is a Prow configuration with its jobs.
type jobFiles struct {
	prow *config.Config
	// from is the file or folder of the jobs.
	from string
}

// loadJobs reads jobs, from a file or a folder, with Prow's own loader and its
// checks. prowConfig is the file of Prow's own configuration; "" is a stand-in
// without presets and with Prow's usual defaults for decoration.
func loadJobs(prowConfig, jobConfig string) (*jobFiles, error) {
	if _, err := os.Stat(jobConfig); err != nil {
		return nil, fmt.Errorf("reading jobs: %w", err)
	}
	if prowConfig == "" {
		dir, err := os.MkdirTemp("", "op-readiness-*")
		if err != nil {
			return nil, fmt.Errorf("making a temporary folder: %w", err)
		}
		defer os.RemoveAll(dir)
		prowConfig = filepath.Join(dir, "config.yaml")
		if err := os.WriteFile(prowConfig, []byte(standIn), 0o600); err != nil {
			return nil, err
		}
	}
	c, err := config.Load(prowConfig, jobConfig, nil, "")
	if err != nil {
		return nil, fmt.Errorf("loading the jobs of %s as Prow does: %w", jobConfig, err)
	}
	return &jobFiles{prow: c, from: jobConfig}, nil
}

// Job is a job of a configuration.
type Job struct {
	Name string
	Type prowapi.ProwJobType
	// Repository is "org/repo"; "" for a periodic.
	Repository string

	presubmit  *config.Presubmit
	postsubmit *config.Postsubmit
	periodic   *config.Periodic
}

func (j *Job) base() *config.JobBase {
	switch {
	case j.presubmit != nil:
		return &j.presubmit.JobBase
	case j.postsubmit != nil:
		return &j.postsubmit.JobBase
	}
	return &j.periodic.JobBase
}

// Brancher tells on which branches a job runs; nil for a periodic.
func (j *Job) brancher() *config.Brancher {
	switch {
	case j.presubmit != nil:
		return &j.presubmit.Brancher
	case j.postsubmit != nil:
		return &j.postsubmit.Brancher
	}
	return nil
}

// jobs are all of the configuration, by kind, repository and place.
func (c *jobFiles) jobs() []Job {
	var all []Job
	for _, repo := range slices.Sorted(maps.Keys(c.prow.PresubmitsStatic)) {
		for i := range c.prow.PresubmitsStatic[repo] {
			p := &c.prow.PresubmitsStatic[repo][i]
			all = append(all, Job{Name: p.Name, Type: prowapi.PresubmitJob, Repository: repo, presubmit: p})
		}
	}
	for _, repo := range slices.Sorted(maps.Keys(c.prow.PostsubmitsStatic)) {
		for i := range c.prow.PostsubmitsStatic[repo] {
			p := &c.prow.PostsubmitsStatic[repo][i]
			all = append(all, Job{Name: p.Name, Type: prowapi.PostsubmitJob, Repository: repo, postsubmit: p})
		}
	}
	for i := range c.prow.Periodics {
		p := &c.prow.Periodics[i]
		all = append(all, Job{Name: p.Name, Type: prowapi.PeriodicJob, periodic: p})
	}
	return all
}

// errNoJob says that there is no job as it was asked for, or not just one.
var errNoJob = errors.New("no such job")

// Find returns the job of a name. Where several jobs have it, repository
// ("org/repo") and branch tell which one it is; "" leaves it open.
func (c *jobFiles) Find(name, repository, branch string) (*Job, error) {
	var found []Job
	var names []string
	all := c.jobs()
	for i := range all {
		j := &all[i]
		names = append(names, j.Name)
		if j.Name == name {
			found = append(found, *j)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: %s has no jobs at all: name the file or folder with --job-config", errNoJob, c.from)
	}
	if len(found) == 0 {
		slices.Sort(names)
		names = slices.Compact(names)
		text := ""
		if near := specs.Nearest(name, names); near != "" {
			text = "; did you mean " + near + "?"
		}
		const most = 20
		if len(names) > most {
			names = append(names[:most], fmt.Sprintf("and %d more", len(names)-most))
		}
		return nil, fmt.Errorf("%w: %s has no job %q%s\nJobs: %s", errNoJob, c.from, name, text, strings.Join(names, ", "))
	}
	var left []Job
	var where []string
	for i := range found {
		j := &found[i]
		b := j.brancher()
		if (repository == "" || j.Repository == repository) && (branch == "" || b == nil || b.ShouldRun(branch)) {
			left = append(left, *j)
		}
		where = append(where, j.where())
	}
	switch len(left) {
	case 1:
		return &left[0], nil
	case 0:
		return nil, fmt.Errorf("%w: %s is a job %s: name one of these with --repo and --base-ref", errNoJob, name, strings.Join(where, ", and "))
	}
	return nil, fmt.Errorf("%w: %s is there %d times, %s: name one with --repo and --base-ref", errNoJob, name, len(left), strings.Join(where, ", and "))
}

// where says what a job is for.
func (j *Job) where() string {
	b := j.brancher()
	if b == nil {
		return "that is periodic"
	}
	text := fmt.Sprintf("of %s, a %s", j.Repository, j.Type)
	if len(b.Branches) > 0 {
		text += " on " + strings.Join(b.Branches, ", ")
	}
	if len(b.SkipBranches) > 0 {
		text += " not on " + strings.Join(b.SkipBranches, ", ")
	}
	return text
}
