package testgrid

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	prowapi "sigs.k8s.io/prow/pkg/apis/prowjobs/v1"
	"sigs.k8s.io/prow/pkg/pod-utils/downwardapi"
	"sigs.k8s.io/prow/pkg/pod-utils/gcs"

	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// The types of jobs.
const (
	Periodic   = string(prowapi.PeriodicJob)
	Postsubmit = string(prowapi.PostsubmitJob)
	Presubmit  = string(prowapi.PresubmitJob)
	Batch      = string(prowapi.BatchJob)
)

// The strategies by which Prow names the folder of a repository
// (GCSConfiguration.PathStrategy).
const (
	StrategyExplicit = prowapi.PathStrategyExplicit
	StrategyLegacy   = prowapi.PathStrategyLegacy
	StrategySingle   = prowapi.PathStrategySingle
)

// Job is whose builds they are. It decides where they lie.
type Job struct {
	Name string
	// Type is Periodic, Postsubmit, Presubmit or Batch.
	Type string
	// Org, Repo and Pull are what a Presubmit ran on; Org and Repo also what
	// a Batch did.
	Org, Repo string
	Pull      int
	// Strategy is one of the path strategies. DefaultOrg and DefaultRepo are
	// what StrategyLegacy and StrategySingle leave out of paths.
	Strategy                string
	DefaultOrg, DefaultRepo string
}

// jobName is what Prow allows as a job's name, and as little is safe in a path.
var jobName = regexp.MustCompile(`^[A-Za-z0-9-._]+$`)

const maxJobName = 200

// ErrJob says that a job is not well described.
var ErrJob = errors.New("the job is not well described")

// jobError is one thing that is wrong with a job. It is an [ErrJob].
type jobError string

func (e jobError) Error() string        { return string(e) }
func (e jobError) Is(target error) bool { return target == ErrJob }

// Validate says all that is wrong with the job, one error per problem; each is an
// [ErrJob], and names the flag that sets what is wrong.
func (j *Job) Validate() error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, jobError(fmt.Sprintf(format, args...))) }
	named := func(flag, value, what string) {
		switch {
		case value == "":
			bad("%s is missing: say %s", flag, what)
		case len(value) > maxJobName || !jobName.MatchString(value) || strings.Trim(value, ".") == "":
			bad("%s %q: a name has letters, digits, '-', '.' and '_', and at most %d of them", flag, cut(value), maxJobName)
		}
	}
	named("--job", j.Name, "which job's build it is, such as windows-readiness")
	strategies := []string{StrategyExplicit, StrategyLegacy, StrategySingle}
	if !slices.Contains(strategies, j.Strategy) {
		bad("--path-strategy %q: it is %s, %s or %s", cut(j.Strategy), strategies[0], strategies[1], strategies[2])
	}
	switch j.Type {
	case Presubmit:
		if org, repo, both := strings.Cut(j.Repo, "/"); both && j.Org == "" && jobName.MatchString(org) && jobName.MatchString(repo) {
			bad("--repo %q: say --org %s --repo %s", cut(j.Repo), org, repo)
		} else {
			named("--org", j.Org, "the organisation of the pull request")
			named("--repo", j.Repo, "the repository of the pull request")
		}
		if j.Pull < 1 {
			bad("--pull %d: a %s runs on a pull request; say its number", j.Pull, Presubmit)
		}
		if j.Strategy == StrategyLegacy || j.Strategy == StrategySingle {
			named("--default-org", j.DefaultOrg, "the organisation that paths leave out")
			named("--default-repo", j.DefaultRepo, "the repository that paths leave out")
		}
	case Periodic, Postsubmit, Batch:
		if j.Pull != 0 {
			bad("--pull %d is for --type %s, and this is a %s", j.Pull, Presubmit, j.Type)
		}
	default:
		bad("--type %q: it is %s, %s, %s or %s", cut(j.Type), Periodic, Postsubmit, Presubmit, Batch)
	}
	return errors.Join(problems...)
}

func (j *Job) spec(build string) *downwardapi.JobSpec {
	spec := &downwardapi.JobSpec{Type: prowapi.ProwJobType(j.Type), Job: j.Name, BuildID: build}
	if j.Org != "" {
		spec.Refs = &prowapi.Refs{Org: j.Org, Repo: j.Repo}
		if j.Type == Presubmit {
			spec.Refs.Pulls = []prowapi.Pull{{Number: j.Pull}}
		}
	}
	return spec
}

func (j *Job) segment() gcs.RepoPathBuilder {
	switch j.Strategy {
	case StrategyLegacy:
		return gcs.NewLegacyRepoPathBuilder(j.DefaultOrg, j.DefaultRepo)
	case StrategySingle:
		return gcs.NewSingleDefaultRepoPathBuilder(j.DefaultOrg, j.DefaultRepo)
	default:
		return gcs.NewExplicitRepoPathBuilder()
	}
}

// BuildDir is the folder of a build, without a slash at its end. The job must
// be valid here and below.
func (j *Job) BuildDir(build string) string { return gcs.PathForSpec(j.spec(build), j.segment()) }

// Alias is the object through which TestGrid finds the build of a Presubmit;
// "" for the other types.
func (j *Job) Alias(build string) string { return gcs.AliasForSpec(j.spec(build)) }

// LatestBuild are the objects that hold the id of the newest build.
func (j *Job) LatestBuild() []string { return gcs.LatestBuildForSpec(j.spec(""), j.segment()) }

// BuildsDir is the folder whose entries, aliases or folders of builds, are the
// job's builds: a test group's gcs_prefix. It ends with a slash.
func (j *Job) BuildsDir() string {
	if alias := j.Alias("0"); alias != "" {
		return path.Dir(alias) + "/"
	}
	return path.Dir(j.BuildDir("0")) + "/"
}

// ownBuilds is the folder in which the job's builds lie themselves: for a
// Presubmit, those on its pull request. It ends with a slash.
func (j *Job) ownBuilds() string { return path.Dir(j.BuildDir("0")) + "/" }

// idDigits is how many digits a build id has. With fewer, TestGrid lists all
// builds of a job each time.
const idDigits = 19

// lowDigits is how many of them come from the run's id.
const lowDigits = 1_000_000

// BuildID returns the id of the build that an attempt at a run makes: the
// milliseconds of its start since the epoch, and six digits of a hash of the
// run's id. Ids are ordered by start, and no two attempts share one.
func BuildID(start time.Time, run string) (string, error) {
	ms := start.UnixMilli()
	id := strconv.FormatInt(ms, 10) + lowOf(run)
	if ms <= 0 || len(id) != idDigits {
		return "", fmt.Errorf("a run that started at %s cannot have a build id", start.UTC().Format(time.RFC3339))
	}
	return id, nil
}

// lowOf are the last digits of the ids of a run's builds.
func lowOf(run string) string {
	sum := sha256.Sum256([]byte(run))
	return fmt.Sprintf("%06d", binary.BigEndian.Uint64(sum[:8])%lowDigits)
}

// ParseBuildID checks that id is a build id as TestGrid, Deck and Prow want it:
// a number that fits into 64 bits, of 19 digits or more.
func ParseBuildID(id string) (uint64, error) {
	n, err := strconv.ParseUint(id, 10, 64)
	switch {
	case err != nil || strconv.FormatUint(n, 10) != id:
		return 0, fmt.Errorf("build id %q is not a number that fits into 64 bits", cut(id))
	case len(id) < idDigits:
		return 0, fmt.Errorf("build id %s has %d digits: with fewer than %d, TestGrid reads all builds of the job each time", id, len(id), idDigits)
	case n > 1<<63-1:
		return 0, fmt.Errorf("build id %s is too large: TestGrid reads a signed number", id)
	}
	return n, nil
}

// BuildTime returns when a build of that id began, by its id.
func BuildTime(id string) (time.Time, error) {
	n, err := ParseBuildID(id)
	if err != nil {
		return time.Time{}, err
	}
	return buildTime(n), nil
}

// buildTime is when a build of this package's ids started.
func buildTime(id uint64) time.Time { return time.UnixMilli(int64(id / lowDigits)) }

func cut(s string) string { return text.Cut(s, 60) }
