package config

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Kind is what starts a job.
type Kind string

// The kinds of jobs.
const (
	Presubmit  Kind = "presubmit"
	Periodic   Kind = "periodic"
	Postsubmit Kind = "postsubmit"
)

// Defaults of jobs that depend on more than their field.
const (
	everyDay           = Duration(24 * time.Hour)
	defaultGracePeriod = Duration(15 * time.Minute)
	defaultCluster     = "default"
	capzCluster        = "eks-prow-build-cluster"
	capzServiceAccount = "azure"
)

// Job is one job: by its name, a job of Prow, a folder of builds in the bucket,
// and a test group of TestGrid. A presubmit that differs between branches is
// several jobs of one name.
type Job struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	// Cell is the cluster that it tests; a postsubmit tests none.
	Cell Cell `json:"cell,omitzero"`
	// Category is the one that it runs; "" is the whole of Config.Categories.
	Category specs.Category `json:"category,omitempty"`
	// Branches and SkipBranches are Prow's: regular expressions for the
	// branches of the repository that it is for.
	Branches     []string `json:"branches,omitempty"`
	SkipBranches []string `json:"skipBranches,omitempty"`
	// RunIfChanged is Prow's regular expression for changed files, "" for a job
	// that only a comment starts, or, of a postsubmit, every merge.
	RunIfChanged string `json:"runIfChanged,omitempty"`
	// Optional says that it cannot block a merge.
	Optional bool `json:"optional,omitempty"`
	// Schedule is when a periodic runs: one field is set, and Every never.
	Schedule Schedule `json:"-"`
	// Period is the usual time between two runs of a periodic.
	Period time.Duration `json:"-"`
	// Settings are all that hold for it, with defaults. Where the cell's
	// provider is capz, what every such job has (labels, extra references) is
	// not among them.
	Settings JobSettings `json:"-"`
	// Folder is where its builds are in the bucket: logs/NAME, or, as aliases,
	// pr-logs/directory/NAME.
	Folder string `json:"folder"`
	// Tab is its name on dashboards, Description what stands there.
	Tab         string `json:"tab"`
	Description string `json:"description"`
	// InProw says that Prow runs it, InGitHub that GitHub Actions do. Only Prow
	// writes podinfo.json beside results.
	InProw   bool `json:"inProw"`
	InGitHub bool `json:"inGitHub"`
	// Published says that its results come into the bucket: all but those of
	// GitHub Actions that publish nothing.
	Published bool `json:"published"`
}

// JobCategories are those that the job runs.
func (c *Config) JobCategories(j Job) []specs.Category {
	if j.Category != "" {
		return []specs.Category{j.Category}
	}
	return c.Categories()
}

// Jobs are all jobs that follow from the file: presubmits (the whole, then the
// categories, each with its variants for branches), periodics in the order of
// the cells, and the postsubmit. Without a section prow or github the cells
// have their jobs all the same: whoever runs them publishes under these names.
func (c *Config) Jobs() []Job {
	var jobs []Job
	if c.Prow != nil && !c.Prow.Presubmits.Disabled {
		jobs = append(jobs, c.presubmits("")...)
		for _, category := range c.PresubmitCategories() {
			jobs = append(jobs, c.presubmits(category)...)
		}
	}
	inProw, inGitHub := c.PeriodicCells(), c.ScheduledCells()
	for _, cell := range c.Cells() {
		j := Job{Kind: Periodic, Cell: cell, InProw: slices.Contains(inProw, cell), InGitHub: slices.Contains(inGitHub, cell)}
		// Where nothing here runs it, whoever does publishes it.
		byOthers := c.Prow == nil && c.GitHub == nil
		j.Published = j.InProw || j.InGitHub && c.GitHub.Publish != nil || byOthers
		if j.InProw || j.InGitHub || byOthers {
			jobs = append(jobs, c.periodic(j))
		}
	}
	if c.Prow != nil && c.Prow.Postsubmit != nil {
		jobs = append(jobs, c.postsubmit())
	}
	return jobs
}

// PresubmitCategories are the categories with a presubmit of their own.
func (c *Config) PresubmitCategories() []specs.Category {
	if c.Prow == nil || c.Prow.Presubmits.Disabled {
		return nil
	}
	if c.Prow.Presubmits.Categories == nil {
		return c.Categories()
	}
	if len(c.Prow.Presubmits.Categories) == 0 {
		return nil
	}
	return parseCategories(c.Prow.Presubmits.Categories)
}

func (c *Config) presubmits(category specs.Category) []Job {
	p := &c.Prow.Presubmits
	base := Job{
		Kind:     Presubmit,
		Name:     c.PresubmitName(category),
		Cell:     c.cell(&p.Cell),
		Category: category,
		Branches: p.Branches,
		Optional: !p.Blocking || category != "",
		InProw:   true, Published: true,
	}
	base.Folder = "pr-logs/directory/" + base.Name
	base.Tab = base.Name
	if category == "" {
		base.RunIfChanged, _ = globsToRegexp(p.RunIfChanged)
	}
	jobs := []Job{base}
	for _, branch := range c.variantBranches(base) {
		pattern := branchPattern(branch)
		jobs[0].SkipBranches = append(jobs[0].SkipBranches, pattern)
		variant := base
		variant.Branches = []string{pattern}
		for _, o := range c.Prow.Overrides {
			if o.Cell != nil && slices.Contains(o.When.Branches, branch) && o.When.matches(base, branch) {
				variant.Cell = c.cell(o.Cell)
			}
		}
		c.settle(&variant, branch, p.JobSettings)
		jobs = append(jobs, variant)
	}
	// Prow takes several jobs of one name where all name branches, and no two
	// have a text in common.
	switch base := &jobs[0]; {
	case len(jobs) == 1:
	case len(base.Branches) == 0:
		base.Branches = []string{".*"}
	default:
		base.Branches = slices.DeleteFunc(slices.Clone(base.Branches), func(b string) bool { return slices.Contains(base.SkipBranches, b) })
		if len(base.Branches) == 0 {
			return jobs[1:]
		}
	}
	c.settle(&jobs[0], "", p.JobSettings)
	return jobs
}

// branchPattern is Prow's regular expression for one branch.
func branchPattern(branch string) string { return "^" + regexp.QuoteMeta(branch) + "$" }

// variantBranches are the branches that overrides name for the presubmit.
func (c *Config) variantBranches(base Job) []string {
	var branches []string
	for _, o := range c.Prow.Overrides {
		for _, b := range o.When.Branches {
			if !slices.Contains(branches, b) && o.When.matches(base, b) {
				branches = append(branches, b)
			}
		}
	}
	slices.Sort(branches)
	return branches
}

func (c *Config) periodic(j Job) Job {
	j.Name, j.Tab = c.PeriodicName(j.Cell), j.Cell.Title
	j.Folder = "logs/" + j.Name
	var s Schedule
	if j.InProw {
		s = c.Prow.Periodics.Schedule
		c.settle(&j, "", c.Prow.Periodics.JobSettings)
		for _, o := range c.Prow.Overrides {
			if len(o.given()) > 0 && o.When.matches(j, "") {
				s = o.Schedule
			}
		}
	} else {
		c.settle(&j, "", JobSettings{})
		if j.InGitHub {
			s = c.gitHubSchedule()
		}
	}
	if len(s.given()) == 0 {
		s.Every = everyDay
	}
	j.Period = s.Period()
	j.Schedule = s.Resolve(j.Name)
	return j
}

func (c *Config) postsubmit() Job {
	p := c.Prow.Postsubmit
	j := Job{Kind: Postsubmit, Name: c.PostsubmitName(), Branches: p.Branches, InProw: true, Published: true}
	j.Folder = "logs/" + j.Name
	j.Tab = j.Name
	j.RunIfChanged, _ = globsToRegexp(p.RunIfChanged)
	c.settle(&j, "", p.JobSettings)
	return j
}

// settle gives the job its settings: the defaults, those of all jobs, of its
// kind, and of the overrides that match it, the later over the earlier.
func (c *Config) settle(j *Job, branch string, ofKind JobSettings) {
	one := 1
	s := JobSettings{
		Cluster:        defaultCluster,
		Resources:      &Resources{CPU: "2", Memory: "4Gi"},
		Timeout:        c.Run.Timeout,
		GracePeriod:    defaultGracePeriod,
		MaxConcurrency: &one,
		AlertEmails:    c.TestGrid.AlertEmails,
		Dashboards:     []string{c.PeriodicsDashboard()},
	}
	if j.Kind == Presubmit {
		s.Dashboards = []string{c.PresubmitsDashboard()}
		s.AlertEmails = nil // a pull request's failure is its author's
	}
	if c.Prow != nil && c.Prow.Profile == ProfileCAPZ && j.Kind != Postsubmit {
		s.Resources.Memory = "9Gi"
		s.Cluster, s.ServiceAccount = capzCluster, capzServiceAccount
	}
	if j.InProw {
		s = s.with(c.Prow.JobSettings).with(ofKind)
		for _, o := range c.Prow.Overrides {
			if o.When.matches(*j, branch) {
				s = s.with(o.JobSettings)
			}
		}
	}
	if j.Kind != Postsubmit {
		s.KubeconfigSecret = j.Cell.Expand(s.KubeconfigSecret)
	}
	j.Settings = s
	j.Description = c.describe(*j)
}

// with is s with what over says.
func (s JobSettings) with(over JobSettings) JobSettings {
	s.Image = cmp.Or(over.Image, s.Image)
	s.Cluster = cmp.Or(over.Cluster, s.Cluster)
	s.ServiceAccount = cmp.Or(over.ServiceAccount, s.ServiceAccount)
	s.KubeconfigSecret = cmp.Or(over.KubeconfigSecret, s.KubeconfigSecret)
	s.Labels = merged(s.Labels, over.Labels)
	s.Env = merged(s.Env, over.Env)
	s.Resources = cmp.Or(over.Resources, s.Resources)
	s.Timeout = cmp.Or(over.Timeout, s.Timeout)
	s.GracePeriod = cmp.Or(over.GracePeriod, s.GracePeriod)
	s.MaxConcurrency = cmp.Or(over.MaxConcurrency, s.MaxConcurrency)
	if over.ExtraRefs != nil {
		s.ExtraRefs = over.ExtraRefs
	}
	if over.Dashboards != nil {
		s.Dashboards = over.Dashboards
	}
	if over.AlertEmails != nil {
		s.AlertEmails = over.AlertEmails
	}
	return s
}

func merged(base, over map[string]string) map[string]string {
	all := maps.Clone(base)
	if all == nil {
		return maps.Clone(over)
	}
	maps.Copy(all, over)
	return all
}

// matches says whether an override is for the job, or for its variant for a
// branch.
func (w When) matches(j Job, branch string) bool {
	switch {
	case len(w.Kinds) > 0 && !slices.Contains(w.Kinds, string(j.Kind)),
		len(w.Branches) > 0 && !slices.Contains(w.Branches, branch),
		len(w.Categories) > 0 && !slices.Contains(w.Categories, string(j.Category)),
		j.Kind == Postsubmit && !w.empty():
		return false
	}
	return j.Kind == Postsubmit || w.Matches(j.Cell)
}

// describe says in one line what a job tests.
func (c *Config) describe(j Job) string {
	if j.Kind == Postsubmit {
		return "Builds the image of " + c.Repository
	}
	what := "Windows operational readiness (KEP-2578)"
	if j.Category != "" {
		what += ", category " + string(j.Category)
	}
	cell := j.Cell
	version := "Kubernetes " + cell.Kubernetes
	if branch := cell.Branch(); branch != "" {
		version = "the newest Kubernetes of branch " + branch
	}
	details := []string{fmt.Sprintf("%s: %s on Windows Server %s", what, version, cell.Windows)}
	if cell.CNI != "" {
		details = append(details, cell.CNI)
	}
	details = append(details, cell.Runtime, cell.Isolation+" isolation")
	if cell.Provider == ProviderKwok {
		details = append(details, "simulated nodes")
	} else if cell.Provider != ProviderExisting {
		details = append(details, cell.Provider)
	}
	return strings.Join(details, ", ")
}

// Expected is how long the tests of some categories are expected to take on a
// cell, one after the other, and how long the longest case. Cases that share
// their tests count once. What making a cluster takes is not in it.
func (c *Config) Expected(cell Cell, categories []specs.Category) (all, longest time.Duration) {
	set, err := specs.Embedded()
	if err != nil {
		return 0, 0
	}
	version := cell.Version()
	if version == "" {
		known := specs.Catalogues()
		version = known[len(known)-1]
	}
	cases, err := set.For(version)
	if err != nil {
		return 0, 0
	}
	counted := map[string]bool{}
	for _, k := range cases {
		if k.Kind == specs.Trial && !c.Run.Trial || k.Kind == specs.Additional && !c.Run.Additional || !slices.Contains(categories, k.Category) {
			continue
		}
		key := fmt.Sprint(k.Tests, k.Conditions)
		if counted[key] {
			continue
		}
		counted[key] = true
		all += k.Duration
		longest = max(longest, k.Duration)
	}
	return all, longest
}

// When says in a few words when the job runs.
func (j Job) When() string {
	s := j.Schedule
	switch {
	case s.Cron != "":
		return s.Cron
	case s.Interval != 0:
		return "every " + s.Interval.String()
	case s.MinimumInterval != 0:
		return s.MinimumInterval.String() + " after the last"
	case j.Kind == Postsubmit && j.RunIfChanged == "":
		return "after each merge"
	case j.Kind == Postsubmit:
		return "after merges that change " + j.RunIfChanged
	case j.RunIfChanged != "":
		return "/test " + j.Name + ", or a change of " + j.RunIfChanged
	}
	return "/test " + j.Name
}

// Where says who runs the job.
func (j Job) Where() string {
	switch {
	case j.InProw && j.InGitHub:
		return "Prow and GitHub"
	case j.InProw:
		return "Prow"
	case j.InGitHub:
		return "GitHub"
	}
	return "up to you"
}

// Table is a table of jobs.
func Table(all []Job) *report.Table {
	t := &report.Table{
		Header: []string{"Kind", "Job", "Cell", "Categories", "Runs", "Where"},
		Value:  append([]Job{}, all...),
	}
	for _, j := range all {
		categories := "all selected"
		if j.Category != "" {
			categories = string(j.Category)
		}
		if j.Kind == Postsubmit {
			categories = ""
		}
		t.Rows = append(t.Rows, []string{string(j.Kind), j.Name, j.Cell.Title, categories, j.When(), j.Where()})
	}
	return t
}
