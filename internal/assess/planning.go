package assess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries/suite"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Planning says what is tested, and with which e2e.test.
type Planning struct {
	// SpecDir has the spec files; "" is this program's own standard.
	SpecDir   string
	Selection result.Selection
	// KubernetesVersion is that of e2e.test; "" is the API server's.
	KubernetesVersion string
	// E2EBinary is the e2e.test to use; "" takes one out of Binaries.
	E2EBinary string
	// SuiteBinary is the op-readiness.test to use, where the plan has tests of it;
	// "" takes one out of Binaries.
	SuiteBinary string
	// Binaries are fetched or built when they are not there; nil is the user's
	// cache.
	Binaries *binaries.Store
	// Provider is the e2e framework's; "" is its default.
	Provider string
	// RuntimeClass is given to Windows pods.
	RuntimeClass string
	// Shards is into how many the plan is cut; 0 is 1.
	Shards int
	// Shared says that the shards are at work on one cluster.
	Shared bool
	// Durations is a results folder that says how long tests take.
	Durations string
	// Notes takes what a person may want to know on the way; nil for nobody.
	Notes io.Writer

	set *specs.Set // read once; nil before
}

// Specs loads the spec files of a folder, or this program's own standard for "".
// What is wrong with the files is a [verdict.UsageError].
func Specs(dir string, notes io.Writer) (*specs.Set, error) {
	if dir == "" {
		return specs.Embedded()
	}
	set, warnings, err := specs.LoadDir(dir)
	for _, w := range warnings {
		fmt.Fprintf(notes, "warning: %s\n", w)
	}
	var problems specs.Problems
	switch {
	case errors.As(err, &problems):
		return nil, verdict.UsageErrorf("%d problems in the spec files of %s:\n%w", len(problems), dir, err)
	case err != nil:
		return nil, verdict.UsageErrorf("%w", err)
	}
	return set, nil
}

// LintedSpecs loads the spec files of a folder and checks them against lists of
// tests. What is wrong with them is a [verdict.UsageError].
func LintedSpecs(dir string, lists []*specs.TestList, notes io.Writer) (*specs.Set, error) {
	set, err := Specs(dir, notes)
	if err != nil {
		return nil, err
	}
	if problems := specs.Lint(set, lists...); len(problems) > 0 {
		return nil, verdict.UsageErrorf("%d problems in the spec files of %s%s:\n%w", len(problems), dir, CheckedAgainst(lists), specs.Problems(problems))
	}
	return set, nil
}

// CheckedAgainst says against which lists spec files were checked; "" for none.
func CheckedAgainst(lists []*specs.TestList) string {
	if len(lists) == 0 {
		return ""
	}
	var versions []string
	for _, l := range lists {
		versions = append(versions, l.Version)
	}
	return ", checked against the tests of Kubernetes " + strings.Join(versions, ", ")
}

// NewestVersion is the newest Kubernetes whose tests come with this program.
func NewestVersion() string {
	known := specs.Catalogues()
	return strings.TrimPrefix(known[len(known)-1], "v")
}

// Binary returns the e2e.test to use: the one that was named, or one of the
// given version from the cache.
func (p *Planning) Binary(ctx context.Context, version string) (*e2e.Binary, error) {
	if p.E2EBinary == "" {
		store, err := p.store()
		if err != nil {
			return nil, err
		}
		paths, err := store.Get(ctx, version, binaries.E2ETest)
		if err != nil {
			return nil, err
		}
		return e2e.Open(ctx, paths[binaries.E2ETest], version)
	}
	b, err := e2e.Open(ctx, p.E2EBinary, p.KubernetesVersion)
	if err != nil && ctx.Err() == nil {
		return nil, verdict.UsageErrorf("--e2e-binary: %w", err)
	}
	return b, err
}

// OwnBinary returns the op-readiness.test that goes with an e2e.test of that
// version: the one that was named, or one from the cache.
func (p *Planning) OwnBinary(ctx context.Context, e2eVersion string) (*e2e.Binary, error) {
	path := p.SuiteBinary
	if path == "" {
		store, err := p.store()
		if err != nil {
			return nil, err
		}
		paths, err := store.Get(ctx, SuiteVersion(e2eVersion), binaries.OpReadinessTest)
		if err != nil {
			return nil, err
		}
		path = paths[binaries.OpReadinessTest]
	}
	b, err := e2e.OpenOwn(ctx, path, e2eVersion, suite.Hash())
	if err != nil && p.SuiteBinary != "" && ctx.Err() == nil {
		return nil, verdict.UsageErrorf("--suite-binary: %w", err)
	}
	return b, err
}

// SuiteVersion returns for which Kubernetes op-readiness.test is built where e2e.test
// is of a version: the pinned one of its minor version, if there is one. Patch
// versions do not matter to it.
func SuiteVersion(e2eVersion string) string {
	of := func(version string) string {
		v, err := specs.ParseVersion(version)
		if err != nil {
			return version
		}
		return v.MinorString()
	}
	for _, pinned := range binaries.PinnedVersions() {
		if of(pinned) == of(e2eVersion) {
			return pinned
		}
	}
	return e2eVersion
}

func (p *Planning) store() (*binaries.Store, error) {
	if p.Binaries != nil {
		return p.Binaries, nil
	}
	dir, err := binaries.DefaultDir(os.Getenv)
	return &binaries.Store{Dir: dir, Source: binaries.Auto, Progress: p.notes(), Environ: os.Environ()}, err
}

// Lint checks the spec files that were named before anything is built, made or
// asked: against the tests of the e2e.test that was named, else of the version,
// else of all versions whose tests come with this program.
func (p *Planning) Lint(ctx context.Context) error {
	if p.SpecDir == "" {
		return nil
	}
	lists, err := p.testLists(ctx)
	if err != nil {
		return err
	}
	p.set, err = LintedSpecs(p.SpecDir, lists, p.notes())
	return err
}

func (p *Planning) notes() io.Writer {
	if p.Notes == nil {
		return io.Discard
	}
	return p.Notes
}

func (p *Planning) testLists(ctx context.Context) ([]*specs.TestList, error) {
	versions := specs.Catalogues()
	switch {
	case p.E2EBinary != "":
		binary, err := p.Binary(ctx, p.KubernetesVersion)
		if err != nil {
			return nil, err
		}
		list, err := binary.List(ctx)
		return []*specs.TestList{list}, err
	case p.KubernetesVersion != "" && !slices.Contains(versions, p.KubernetesVersion):
		return nil, nil // its tests are known when there is its e2e.test
	case p.KubernetesVersion != "":
		versions = []string{p.KubernetesVersion}
	}
	var lists []*specs.TestList
	for _, v := range versions {
		list, err := specs.Catalogue(v)
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	return lists, nil
}

// specs returns the spec files, read once.
func (p *Planning) specs() (*specs.Set, error) {
	if p.set == nil {
		set, err := Specs(p.SpecDir, p.notes())
		if err != nil {
			return nil, err
		}
		p.set = set
	}
	return p.set, nil
}

// standard returns the cases that hold for a Kubernetes version.
func (p *Planning) standard(version string) ([]specs.Case, error) {
	set, err := p.specs()
	if err != nil {
		return nil, err
	}
	cases, err := set.For(version)
	if err != nil {
		return nil, verdict.UsageErrorf("%w", err)
	}
	return cases, nil
}

// CheckVersion refuses a Kubernetes version against which no case was checked.
// Spec files that are brought know themselves for which versions they are.
func (p *Planning) CheckVersion(version string) (note string, err error) {
	note, err = specs.CheckVersion(version)
	if err != nil && p.SpecDir == "" {
		return "", verdict.UsageErrorf("%w", err)
	}
	return note, nil
}

// checkSelection finds names that are wrong before anything is made or asked.
// The ids of cases are the same for all Kubernetes versions.
func (p *Planning) checkSelection() error {
	cases, err := p.standard(NewestVersion())
	if err != nil {
		return err
	}
	if _, err := plan.Select(cases, &p.Selection); err != nil {
		return verdict.UsageErrorf("%w", err)
	}
	return nil
}

// Resolve gets the e2e.test of a version, or the one that was named, and makes
// the plan for its tests.
func (p *Planning) Resolve(ctx context.Context, version string) (*e2e.Binary, *result.Plan, error) {
	if p.E2EBinary == "" {
		// Before minutes go by for a binary that is not wanted.
		if _, err := p.CheckVersion(version); err != nil {
			return nil, nil, err
		}
	}
	binary, err := p.Binary(ctx, version)
	if err != nil {
		return nil, nil, err
	}
	tests, err := binary.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	made, err := p.Plan(tests)
	return binary, made, err
}

// Plan makes the plan for the tests that an e2e.test has.
func (p *Planning) Plan(tests *specs.TestList) (*result.Plan, error) {
	note, err := p.CheckVersion(tests.Version)
	if err != nil {
		return nil, err
	}
	if note != "" {
		p.notef("warning: %s", note)
	}
	cases, err := p.standard(tests.Version)
	if err != nil {
		return nil, err
	}
	if tested := func(c specs.Case) bool { return len(c.Tests) > 0 }; !slices.ContainsFunc(cases, tested) && slices.ContainsFunc(p.set.Cases, tested) {
		return nil, verdict.UsageErrorf("no case of %s has a test for Kubernetes %s", p.SpecDir, tests.Version)
	}
	durations, err := p.durations()
	if err != nil {
		return nil, err
	}
	made, err := plan.Make(plan.Request{
		Cases:     cases,
		Tests:     tests,
		Provider:  p.provider(),
		Selection: p.Selection,
		Shards:    max(p.Shards, 1),
		Shared:    p.Shared,
		Durations: durations,

		RuntimeClass: p.RuntimeClass,
	})
	if err != nil {
		return nil, verdict.UsageErrorf("%w", err)
	}
	return made, nil
}

func (p *Planning) provider() string {
	if p.Provider == "" {
		return e2e.DefaultProvider
	}
	return p.Provider
}

// durations reads how long tests took in an earlier run.
func (p *Planning) durations() (map[string]time.Duration, error) {
	if p.Durations == "" {
		return nil, nil
	}
	before, err := result.Load(p.Durations)
	if err != nil {
		return nil, verdict.UsageErrorf("--durations: %w", err)
	}
	return before.Durations(), nil
}
