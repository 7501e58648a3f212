package config

// This file is read twice: by the compiler, and, embedded, by Schema, which
// takes the comments of types and fields for descriptions. Write them for the
// reader of op-readiness.yaml.

// File is what op-readiness.yaml says.
type File struct {
	// The word that the names of all jobs, dashboards and workflows are made of: lower-case letters, digits and dashes.
	Name string `yaml:"name,omitempty" jsonschema:"default=windows-op-readiness,pattern=^[a-z0-9]([-a-z0-9]*[a-z0-9])?$,minLength=3,maxLength=30"`
	// The GitHub repository whose pull requests are tested, as org/repo.
	Repository string `yaml:"repository" jsonschema:"required,pattern=^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+$"`
	// The clusters to test: one cell for each combination of the axes' values.
	Matrix Matrix `yaml:"matrix" jsonschema:"required"`
	// How 'op-readiness run' is called in every job.
	Run Run `yaml:"run,omitempty"`
	// Where results are published, and from where TestGrid reads them.
	Results Results `yaml:"results,omitempty"`
	// How Prow runs it; without this section there are no Prow jobs.
	Prow *Prow `yaml:"prow,omitempty"`
	// How TestGrid shows it.
	TestGrid TestGrid `yaml:"testgrid,omitempty"`
	// How GitHub Actions run it; without this section there are no workflows.
	GitHub *GitHub `yaml:"github,omitempty"`
}

// Matrix is the axes along which clusters differ. The first value of an axis
// is its usual one: it shows in no name, except for kubernetes and windows. So
// add values at the end, and the names of the cells that there are stay.
type Matrix struct {
	// Kubernetes versions ("1.36", the newest patch of it, or "1.36.3"), or branches of Kubernetes (release-1.35, master), whose newest build is taken.
	Kubernetes []string `yaml:"kubernetes" jsonschema:"required,minItems=1,uniqueItems=true,pattern=^(v?1\\.[0-9]{1\\,2}(\\.[0-9]{1\\,3})?|release-1\\.[0-9]{1\\,2}|master)$"`
	// Windows Server releases of the Windows nodes.
	Windows []string `yaml:"windows" jsonschema:"required,minItems=1,uniqueItems=true,enum=2019,enum=2022,enum=2025"`
	// Network plugins, such as calico or flannel, in lower case; without this axis, whatever the cluster has.
	CNI []string `yaml:"cni,omitempty" jsonschema:"minItems=1,uniqueItems=true,pattern=^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"`
	// Container runtimes, such as containerd, containerd-2.1 or containerd-nightly, in lower case; the default is containerd.
	Runtime []string `yaml:"runtime,omitempty" jsonschema:"minItems=1,uniqueItems=true,pattern=^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"`
	// How Windows containers are isolated (KEP-1001); the default is process.
	Isolation []string `yaml:"isolation,omitempty" jsonschema:"minItems=1,uniqueItems=true,enum=process,enum=hyperv"`
	// Where the cluster comes from: existing (you bring its kubeconfig; the default), kwok (simulated, made for the run), capz (made by Prow's profile capz; its default), or a lower-case name of yours for existing ones, such as rke2 or aks.
	Provider []string `yaml:"provider,omitempty" jsonschema:"minItems=1,uniqueItems=true,pattern=^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"`
	// Cells to leave out: each entry removes all cells that it matches. Axes that it does not name match anything.
	Exclude []Selector `yaml:"exclude,omitempty" jsonschema:"minItems=1"`
	// Cells to add beside the combinations. Axes that an entry does not name have their first value.
	Include []Include `yaml:"include,omitempty" jsonschema:"minItems=1"`
}

// Selector matches cells by their values on the axes; it names at least one.
type Selector struct {
	// Kubernetes versions or branches, as the matrix spells them.
	Kubernetes Values `yaml:"kubernetes,omitempty"`
	// Windows Server releases.
	Windows Values `yaml:"windows,omitempty"`
	// Network plugins.
	CNI Values `yaml:"cni,omitempty"`
	// Container runtimes.
	Runtime Values `yaml:"runtime,omitempty"`
	// Isolation of Windows containers.
	Isolation Values `yaml:"isolation,omitempty"`
	// Where the cluster comes from.
	Provider Values `yaml:"provider,omitempty"`
}

// Include is one cell beside the combinations of the axes.
type Include struct {
	// Kubernetes version ("1.36" or "1.36.3") or branch (release-1.35, master).
	Kubernetes string `yaml:"kubernetes,omitempty" jsonschema:"pattern=^(v?1\\.[0-9]{1\\,2}(\\.[0-9]{1\\,3})?|release-1\\.[0-9]{1\\,2}|master)$"`
	// Windows Server release.
	Windows string `yaml:"windows,omitempty" jsonschema:"enum=2019,enum=2022,enum=2025"`
	// Network plugin, in lower case.
	CNI string `yaml:"cni,omitempty" jsonschema:"pattern=^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"`
	// Container runtime, in lower case.
	Runtime string `yaml:"runtime,omitempty" jsonschema:"pattern=^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"`
	// Isolation of Windows containers.
	Isolation string `yaml:"isolation,omitempty" jsonschema:"enum=process,enum=hyperv"`
	// Where the cluster comes from, in lower case.
	Provider string `yaml:"provider,omitempty" jsonschema:"pattern=^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"`
}

// Run is how 'op-readiness run' is called in every job.
type Run struct {
	// Categories of the standard to run, such as Core.Network; the default is all.
	Categories []string `yaml:"categories,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// Into how many shards GitHub Actions cut a run. Prow has no jobs that wait for each other: there a job is one shard, and the categories are what runs side by side.
	Shards int `yaml:"shards,omitempty" jsonschema:"default=1,minimum=1,maximum=50"`
	// How often a failed test runs again, with no other beside it; a later pass is flaky.
	Retries int `yaml:"retries,omitempty" jsonschema:"minimum=0,maximum=10"`
	// How many tests that allow it run beside each other; the default goes by the Windows nodes of the cluster and their free places, and is at most 4.
	Procs int `yaml:"procs,omitempty" jsonschema:"minimum=1,maximum=32"`
	// The longest that a job may take, the making of its cluster included.
	Timeout Duration `yaml:"timeout,omitempty" jsonschema:"default=4h"`
	// The provider of the e2e framework (--provider); not where the cluster comes from.
	E2EProvider string `yaml:"e2eProvider,omitempty" jsonschema:"default=skeleton"`
	// Capabilities that the clusters are declared not to have (--without).
	Without []string `yaml:"without,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// Declares that the clusters have no way to the internet (--air-gapped).
	AirGapped bool `yaml:"airGapped,omitempty"`
	// Lets tests reboot Windows nodes, all of them at once where the standard asks for that (--allow-reboot).
	AllowReboot bool `yaml:"allowReboot,omitempty"`
	// Also runs tests beyond the standard; they never gate (--additional).
	Additional bool `yaml:"additional,omitempty"`
	// Also runs this project's own tests, which are on trial: they decide nothing, and some change nodes for a moment (--trial).
	Trial bool `yaml:"trial,omitempty"`
}

// Results is where results are published.
type Results struct {
	// The bucket, as gs://NAME, s3://NAME or file:///FOLDER; a folder in it is pathPrefix. TestGrid reads gs:// only.
	Bucket string `yaml:"bucket,omitempty" jsonschema:"pattern=^(gs://[a-z0-9][-_.a-z0-9]{1\\,220}[a-z0-9]|s3://[a-z0-9][-.a-z0-9]{1\\,61}[a-z0-9]|file:///.+)$"`
	// Folder in the bucket under which logs/ and pr-logs/ are, without a slash at either end.
	PathPrefix string `yaml:"pathPrefix,omitempty" jsonschema:"pattern=^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$"`
	// How the folder of a pull request's repository is named, as Prow has it: explicit (org_repo), legacy (defaultOrg and defaultRepo left out), single (defaultRepo left out).
	PathStrategy string `yaml:"pathStrategy,omitempty" jsonschema:"default=explicit,enum=explicit,enum=legacy,enum=single"`
	// The organisation that the strategies legacy and single leave out.
	DefaultOrg string `yaml:"defaultOrg,omitempty"`
	// The repository that the strategies legacy and single leave out.
	DefaultRepo string `yaml:"defaultRepo,omitempty"`
}

// Prow is how Prow runs it. What stands here itself holds for all jobs;
// presubmits, periodics, postsubmit and overrides say it anew for theirs.
type Prow struct {
	// Which conventions the jobs follow: plain (a cluster of yours, by a kubeconfig in a Secret), or capz (those of sig-windows in kubernetes/test-infra: clusters on Azure, made by windows-testing's run-capz-e2e.sh). Cells of provider kwok need neither.
	Profile     string `yaml:"profile,omitempty" jsonschema:"default=plain,enum=plain,enum=capz"`
	JobSettings `yaml:",inline"`
	// Jobs for pull requests, started by a comment: one for the whole plan and one per category.
	Presubmits Presubmits `yaml:"presubmits,omitempty"`
	// One periodic job per cell of the matrix.
	Periodics Periodics `yaml:"periodics,omitempty"`
	// A job that builds the image after a merge; without this section there is none.
	Postsubmit *PostsubmitJob `yaml:"postsubmit,omitempty"`
	// Other settings for some jobs; of several that match, a later one wins.
	Overrides []Override `yaml:"overrides,omitempty" jsonschema:"minItems=1"`
	// Presets that your Prow has, beside those that sig-windows' jobs use. Labels that begin with preset- must name one that is known.
	Presets []Preset `yaml:"presets,omitempty" jsonschema:"minItems=1"`
	// Annotates jobs of branch master for fork-per-release, with which a release of Kubernetes copies its jobs.
	ForkPerRelease bool `yaml:"forkPerRelease,omitempty"`
	// The most machine-hours a week that all jobs may cost; generating refuses above it. 0 sets no limit.
	BudgetMachineHoursPerWeek int `yaml:"budgetMachineHoursPerWeek,omitempty" jsonschema:"minimum=0"`
}

// JobSettings are settings of Prow jobs. Where they are said twice, lists and
// values replace, labels and env add.
type JobSettings struct {
	// Image that the job runs, in profile plain with op-readiness in it, as registry/name:tag or registry/name@sha256:DIGEST.
	Image string `yaml:"image,omitempty" jsonschema:"pattern=^[a-z0-9]([-._:/@A-Za-z0-9]*[A-Za-z0-9])?$"`
	// Prow build cluster; the default is default, with profile capz eks-prow-build-cluster.
	Cluster string `yaml:"cluster,omitempty" jsonschema:"minLength=1"`
	// Service account of the job's pod.
	ServiceAccount string `yaml:"serviceAccount,omitempty" jsonschema:"minLength=1"`
	// Secret with the cluster's kubeconfig under the key kubeconfig, in profile plain. {cell}, {kubernetes}, {windows}, {cni}, {runtime}, {isolation} and {provider} stand for the job's.
	KubeconfigSecret string `yaml:"kubeconfigSecret,omitempty" jsonschema:"minLength=1"`
	// Labels of the job, with those that apply presets.
	Labels map[string]string `yaml:"labels,omitempty"`
	// Environment of the job's container.
	Env map[string]string `yaml:"env,omitempty"`
	// CPU and memory, both requested and the limit; the default is 2 CPUs and 4Gi, with profile capz 9Gi.
	Resources *Resources `yaml:"resources,omitempty"`
	// Repositories that Prow clones beside the one under test. In profile capz these come beside those that it needs.
	ExtraRefs []ExtraRef `yaml:"extraRefs,omitempty" jsonschema:"minItems=1"`
	// The longest that the job may take; the default is run.timeout.
	Timeout Duration `yaml:"timeout,omitempty"`
	// How long a stopped job may take to write results and clean up; the default is 15m.
	GracePeriod Duration `yaml:"gracePeriod,omitempty"`
	// How many runs of the job may go on at once; the default is 1. 0 sets no limit.
	MaxConcurrency *int `yaml:"maxConcurrency,omitempty" jsonschema:"minimum=0"`
	// TestGrid dashboards on which the job has a tab; each one of testgrid.dashboards, or of testgrid.declaredElsewhere.
	Dashboards []string `yaml:"dashboards,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// Addresses that TestGrid mails when the job fails, each as name@domain; the default is testgrid.alertEmails, and nobody for presubmits.
	AlertEmails []string `yaml:"alertEmails,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
}

// Resources are what a job's container requests, and its limit.
type Resources struct {
	// CPUs, more than 0, such as "2" or 500m.
	CPU string `yaml:"cpu" jsonschema:"required,pattern=^([1-9][0-9]*m?|[0-9]+\\.[0-9]+)$"`
	// Memory, such as 9Gi or 512Mi.
	Memory string `yaml:"memory" jsonschema:"required,pattern=^[1-9][0-9]*(Ki|Mi|Gi)$"`
}

// ExtraRef is a repository that Prow clones for a job.
type ExtraRef struct {
	// Organisation on GitHub.
	Org string `yaml:"org" jsonschema:"required,minLength=1"`
	// Repository.
	Repo string `yaml:"repo" jsonschema:"required,minLength=1"`
	// Branch or tag.
	BaseRef string `yaml:"baseRef" jsonschema:"required,minLength=1"`
	// Folder below $GOPATH/src, where it is not github.com/org/repo.
	PathAlias string `yaml:"pathAlias,omitempty"`
	// Starts the job in this repository; at most one does.
	Workdir bool `yaml:"workdir,omitempty"`
}

// Preset is a preset of your Prow, applied to jobs by its label.
type Preset struct {
	// The label, preset-NAME, such as preset-azure-community.
	Label string `yaml:"label" jsonschema:"required,pattern=^preset-[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"`
	// Its value; the default is "true".
	Value string `yaml:"value,omitempty" jsonschema:"default=true"`
	// Names of the environment variables that it sets: jobs must not set them, too.
	Env []string `yaml:"env,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
}

// Presubmits are the jobs for pull requests.
type Presubmits struct {
	// Makes none.
	Disabled    bool `yaml:"disabled,omitempty"`
	JobSettings `yaml:",inline"`
	// The cell that they test; axes not named have their first value.
	Cell Include `yaml:"cell,omitempty"`
	// Categories that have a job of their own; the default is all of run.categories, and none means only the whole.
	Categories []string `yaml:"categories,omitempty" jsonschema:"uniqueItems=true"`
	// Regular expressions for branches that are tested; the default is all.
	Branches []string `yaml:"branches,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// Runs the whole by itself when a file changes that one of these globs matches: * and ? stay within a folder, ** does not, {a,b} is either.
	RunIfChanged []string `yaml:"runIfChanged,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// Lets the whole block a merge; without it, and for categories, they are optional.
	Blocking bool `yaml:"blocking,omitempty"`
}

// Periodics are the jobs of the matrix, one per cell.
type Periodics struct {
	// Makes none.
	Disabled bool `yaml:"disabled,omitempty"`
	// Which cells; the default is all.
	Cells       []Selector `yaml:"cells,omitempty" jsonschema:"minItems=1"`
	JobSettings `yaml:",inline"`
	Schedule    `yaml:",inline"`
}

// Schedule is when periodic jobs run: one of every, cron, interval and minimumInterval.
type Schedule struct {
	// Runs once in this time, at a time of day that the job's name decides, so that jobs are spread: 24h, 168h or what divides 24h; the default is 24h.
	Every Duration `yaml:"every,omitempty"`
	// Runs at these times, as cron has it, in UTC.
	Cron string `yaml:"cron,omitempty" jsonschema:"minLength=1"`
	// Runs this long after the last run began, as Prow has it.
	Interval Duration `yaml:"interval,omitempty"`
	// Runs this long after the last run ended, as Prow has it.
	MinimumInterval Duration `yaml:"minimumInterval,omitempty"`
}

// PostsubmitJob is the job that builds the image.
type PostsubmitJob struct {
	JobSettings `yaml:",inline"`
	// Command of the container.
	Command []string `yaml:"command,omitempty" jsonschema:"minItems=1"`
	// Arguments of the command, or of the image's own.
	Args []string `yaml:"args,omitempty" jsonschema:"minItems=1"`
	// Regular expressions for branches; the default is all.
	Branches []string `yaml:"branches,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// Runs only when a file changed that one of these globs matches.
	RunIfChanged []string `yaml:"runIfChanged,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
}

// Override is other settings for the jobs that it matches.
type Override struct {
	// Which jobs: all that everything named here matches.
	When        When `yaml:"when" jsonschema:"required"`
	JobSettings `yaml:",inline"`
	Schedule    `yaml:",inline"`
	// The cell that presubmits of when.branches test; axes not named have their first value.
	Cell *Include `yaml:"cell,omitempty"`
}

// When matches jobs; it names at least one thing.
type When struct {
	// Kinds of jobs.
	Kinds []string `yaml:"kinds,omitempty" jsonschema:"minItems=1,uniqueItems=true,enum=presubmit,enum=periodic,enum=postsubmit"`
	// Branches of the repository under test, by name: its presubmits get a variant for them.
	Branches []string `yaml:"branches,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// Categories of the standard: their presubmits.
	Categories []string `yaml:"categories,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	Selector   `yaml:",inline"`
}

// TestGrid is how TestGrid shows it.
type TestGrid struct {
	// Dashboard group; its name begins the names of its dashboards. The default is the name.
	Group string `yaml:"group,omitempty" jsonschema:"minLength=1"`
	// Names of the dashboards.
	Dashboards Dashboards `yaml:"dashboards,omitempty"`
	// Dashboards that another file of the same TestGrid declares. Only annotations of Prow jobs put tabs there.
	DeclaredElsewhere []string `yaml:"declaredElsewhere,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// Who declares the tabs of Prow jobs: file (the generated one), or annotations (of the jobs, for kubernetes/test-infra's configurator).
	Tabs string `yaml:"tabs,omitempty" jsonschema:"default=file,enum=file,enum=annotations"`
	// How a category is shown across all cells: tabs (one tab per category, fed by all cells), dashboards (one dashboard per category, with one tab per cell), or none. The default is tabs; for the buckets of kubernetes/test-infra it is dashboards.
	Categories string `yaml:"categories,omitempty" jsonschema:"enum=tabs,enum=dashboards,enum=none"`
	// How many days of results are shown.
	DaysOfResults int `yaml:"daysOfResults,omitempty" jsonschema:"default=30,minimum=1,maximum=365"`
	// How many runs count as recent, for a tab's status and for hiding old rows. Presubmits have at least 20.
	RecentRuns int `yaml:"recentRuns,omitempty" jsonschema:"default=10,minimum=1,maximum=200"`
	// Rows above the grid, after Commit, kubernetes-version and windows-version: keys of a run's metadata, such as container-runtime. The verdict is always there, last where it is not listed.
	ColumnHeaders []string `yaml:"columnHeaders,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// Addresses that TestGrid mails, each as name@domain; none by default.
	AlertEmails []string `yaml:"alertEmails,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// After how many consecutive failures a row alerts.
	FailuresToAlert int `yaml:"failuresToAlert,omitempty" jsonschema:"default=2,minimum=1,maximum=100"`
	// After how many consecutive passes an alert ends.
	PassesToEndAlert int `yaml:"passesToEndAlert,omitempty" jsonschema:"default=1,minimum=1,maximum=100"`
	// After how many hours without results a periodic job's tab is stale. The default is twice the time between its runs.
	StaleHours int `yaml:"staleHours,omitempty" jsonschema:"minimum=1,maximum=8760"`
	// An https address without a slash at its end that shows a build, before BUCKET/FOLDER/BUILD: https://prow.k8s.io/view/gs of a Prow, or the default, Google's browser of buckets.
	BuildURL string `yaml:"buildURL,omitempty" jsonschema:"default=https://console.cloud.google.com/storage/browser,pattern=^https://[^ ]+[^ /]$"`
	// An https address without a slash at its end that shows all builds of a job, before BUCKET/FOLDER: https://prow.k8s.io/job-history/gs of a Prow, or the default, Google's browser of buckets.
	HistoryURL string `yaml:"historyURL,omitempty" jsonschema:"default=https://console.cloud.google.com/storage/browser,pattern=^https://[^ ]+[^ /]$"`
	// How a bug is filed from a cell.
	Bug Bug `yaml:"bug,omitempty"`
}

// Dashboards are names of dashboards.
type Dashboards struct {
	// Tabs of periodic jobs, one per cell. The default is GROUP-periodics.
	Periodics string `yaml:"periodics,omitempty" jsonschema:"minLength=1"`
	// Tabs of presubmits. The default is GROUP-presubmits.
	Presubmits string `yaml:"presubmits,omitempty" jsonschema:"minLength=1"`
	// Tabs of categories across all cells; with categories: dashboards, what their names begin with. The default is GROUP-categories.
	Categories string `yaml:"categories,omitempty" jsonschema:"minLength=1"`
}

// Bug is how a bug is filed from a cell. TestGrid replaces <test-name>,
// <test-url>, <test-id>, <display-name>, <environment>, <test-status> and
// <results-explorer>.
type Bug struct {
	// The new issue's https address; the default is https://github.com/REPOSITORY/issues/new.
	URL string `yaml:"url,omitempty" jsonschema:"pattern=^https://[^ ]+$"`
	// Its title.
	Title string `yaml:"title,omitempty" jsonschema:"default=Windows readiness: <test-name>"`
	// Its text.
	Body string `yaml:"body,omitempty" jsonschema:"default=<test-url>"`
}

// GitHub is how GitHub Actions run it.
type GitHub struct {
	// Name of the workflows, as GitHub shows it.
	Workflow string `yaml:"workflow,omitempty" jsonschema:"default=Windows operational readiness,minLength=1,maxLength=80"`
	// The reusable workflows that are called: org/repo@ref.
	Uses           string `yaml:"uses,omitempty" jsonschema:"default=windows-op-readiness/windows-op-readiness@v1,pattern=^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+@[A-Za-z0-9._/-]+$"`
	GitHubSettings `yaml:",inline"`
	// Runs for pull requests; without this section there are none.
	PullRequests *PullRequests `yaml:"pullRequests,omitempty"`
	// Scheduled runs of the matrix; without this section there are none.
	Scheduled *Scheduled `yaml:"scheduled,omitempty"`
	// The comment on pull requests.
	Comment Comment `yaml:"comment,omitempty"`
	// Publishes results to results.bucket, without a stored key; without this section nothing is published.
	Publish *Publish `yaml:"publish,omitempty"`
	// Other settings for some cells; of several that match, a later one wins.
	Overrides []GitHubOverride `yaml:"overrides,omitempty" jsonschema:"minItems=1"`
}

// GitHubSettings are settings of GitHub jobs.
type GitHubSettings struct {
	// Labels of the runner; the default is ubuntu-latest.
	RunsOn Values `yaml:"runsOn,omitempty"`
	// Secret with the cluster's kubeconfig. {cell}, {kubernetes}, {windows}, {cni}, {runtime}, {isolation} and {provider} stand for the cell's, in capitals and with underscores.
	KubeconfigSecret string `yaml:"kubeconfigSecret,omitempty" jsonschema:"minLength=1"`
}

// GitHubOverride is other settings for the cells that it matches.
type GitHubOverride struct {
	// Which cells.
	When           Selector `yaml:"when" jsonschema:"required"`
	GitHubSettings `yaml:",inline"`
}

// PullRequests are runs for pull requests.
type PullRequests struct {
	// Branches that pull requests go to; the default is all.
	Branches []string `yaml:"branches,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// Runs only when a file changes that one of these globs matches.
	Paths []string `yaml:"paths,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// Which cells they test; the default is the first that is not one of capz.
	Cells []Selector `yaml:"cells,omitempty" jsonschema:"minItems=1"`
}

// Scheduled is when the matrix runs: every or cron.
type Scheduled struct {
	// Which cells; the default is all but those of capz, which only Prow can make.
	Cells []Selector `yaml:"cells,omitempty" jsonschema:"minItems=1"`
	// Runs once in this time, at a time that the name decides: 24h, 168h or what divides 24h; the default is 24h.
	Every Duration `yaml:"every,omitempty"`
	// Runs at these times, as cron has it, in UTC.
	Cron string `yaml:"cron,omitempty" jsonschema:"minLength=1"`
}

// Comment is the comment on pull requests.
type Comment struct {
	// Writes none; the job summary has the report.
	Disabled bool `yaml:"disabled,omitempty"`
	// Tells comments of several workflows on one pull request apart: lower-case letters, digits and dashes; the default is the name.
	ID string `yaml:"id,omitempty" jsonschema:"pattern=^[a-z0-9]([-a-z0-9]*[a-z0-9])?$,maxLength=60"`
	// Labels of the runner that comments, with a token that may write: not one on which pull requests run code. The default is ubuntu-latest.
	RunsOn Values `yaml:"runsOn,omitempty"`
}

// Publish is how GitHub Actions are let into the bucket: by a Google Cloud
// workload identity, which only the job that publishes may use.
type Publish struct {
	// projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER.
	WorkloadIdentityProvider string `yaml:"workloadIdentityProvider" jsonschema:"required,pattern=^projects/[0-9]+/locations/global/workloadIdentityPools/[^/ ]+/providers/[^/ ]+$"`
	// Service account that may write to the bucket, such as NAME@PROJECT.iam.gserviceaccount.com.
	ServiceAccount string `yaml:"serviceAccount,omitempty" jsonschema:"pattern=^[^@ ]+@[^@ ]+$"`
}
