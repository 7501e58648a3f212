package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// jobs checks what only the jobs show.
func (v *validator) jobs() {
	v.jobNames()
	secrets := map[string]Cell{}
	limits := map[string]int{}
	for _, j := range v.Jobs() {
		v.timeout(j)
		if !j.InProw {
			continue
		}
		s := j.Settings
		if s.Image == "" {
			v.once("prow", "has no image for the job %s: name one with op-readiness in it, as image", j.Name)
		}
		if first, ok := limits[j.Name]; ok && first != *s.MaxConcurrency {
			field, _ := v.source(j, func(s JobSettings) bool { return s.MaxConcurrency != nil })
			v.once(field+".maxConcurrency", "the job %s has %d here and %d on other branches, which Prow refuses: set one for all", j.Name, *s.MaxConcurrency, first)
		}
		limits[j.Name] = *s.MaxConcurrency
		v.presetEnv(j)
		if j.Kind != Periodic && slices.ContainsFunc(s.ExtraRefs, func(r ExtraRef) bool { return strings.EqualFold(r.Org+"/"+r.Repo, v.Repository) }) {
			field, _ := v.source(j, func(s JobSettings) bool { return s.ExtraRefs != nil })
			v.once(field+".extraRefs", "the job %s clones %s for the change that it tests, and again by this, which Prow refuses: remove it", j.Name, v.Repository)
		}
		v.kubeconfig(j, secrets)
	}
}

// kubeconfig checks that a job that needs a kubeconfig has one, and that each
// cell has its own.
func (v *validator) kubeconfig(j Job, secrets map[string]Cell) {
	if j.Kind == Postsubmit || j.Cell.Provider == ProviderKwok || j.Cell.Provider == ProviderCAPZ {
		return
	}
	if j.Settings.KubeconfigSecret == "" {
		v.once("prow", "has no kubeconfigSecret for the job %s, so it has no cluster: name the Secret with the kubeconfig, such as kubeconfig-{cell}", j.Name)
		return
	}
	if j.Kind == Periodic {
		field, _ := v.source(j, func(s JobSettings) bool { return s.KubeconfigSecret != "" })
		v.oneCluster(field+".kubeconfigSecret", j.Settings.KubeconfigSecret, j.Cell, secrets)
	}
}

// source is the section that gives a job the settings for which has is true,
// the last one that does; false where none does, and it is the default.
func (v *validator) source(j Job, has func(JobSettings) bool) (string, bool) {
	if !j.InProw {
		return "run", false
	}
	for i, o := range slices.Backward(v.Prow.Overrides) {
		branch := ""
		for _, b := range o.When.Branches {
			if slices.Contains(j.Branches, branchPattern(b)) {
				branch = b
			}
		}
		if has(o.JobSettings) && o.When.matches(j, branch) {
			return fmt.Sprintf("prow.overrides[%d]", i), true
		}
	}
	switch {
	case j.Kind == Presubmit && has(v.Prow.Presubmits.JobSettings):
		return "prow.presubmits", true
	case j.Kind == Periodic && has(v.Prow.Periodics.JobSettings):
		return "prow.periodics", true
	case j.Kind == Postsubmit && has(v.Prow.Postsubmit.JobSettings):
		return "prow.postsubmit", true
	case has(v.Prow.JobSettings):
		return "prow", true
	}
	return "run", false
}

// presetEnv checks that no variable of the job is one of its presets', which
// Prow refuses.
func (v *validator) presetEnv(j Job) {
	labels := v.JobLabels(j)
	for _, p := range v.Presets() {
		if labels[p.Label] != p.Value {
			continue
		}
		for _, name := range p.Env {
			has := func(s JobSettings) bool { _, ok := s.Env[name]; return ok }
			if has(j.Settings) {
				field, _ := v.source(j, has)
				v.once(field+".env."+name, "is set by the preset %s of the job %s, too, which Prow refuses: take one away", p.Label, j.Name)
			}
		}
	}
}

// jobNames checks that no two jobs share a name, nor, normalised, a test group.
// The presubmits of several branches do.
func (v *validator) jobNames() {
	type owner struct {
		what string
		cell Cell
	}
	seen := map[string]owner{}
	for _, j := range v.Jobs() {
		what := string(j.Kind)
		switch {
		case j.Kind == Periodic:
			what = "cell " + j.Cell.Title
		case j.Category != "":
			what = "category " + string(j.Category)
		}
		if !jobName.MatchString(j.Name) {
			v.once("name", "makes %q the name of a job: use lower-case letters, digits and dashes", j.Name)
		}
		key := Normalise(j.Name)
		first, again := seen[key]
		switch {
		case !again:
		case first.what != what:
			v.add("matrix", "the %s and the %s have one name, %s, for Prow or for TestGrid, which compares letters and digits only: rename a value of the matrix", first.what, what, j.Name)
		case j.Kind == Periodic && first.cell != j.Cell:
			one, other := first.cell.unlike(j.Cell)
			v.add("matrix", "two cells are called %s, one with %s and one with %s, for a name has only the values that are not the first of their axis: rename one of these", j.Cell.Title, one, other)
		}
		seen[key] = owner{what, j.Cell}
		if problem := NameProblem(j.Tab); problem != "" {
			v.add("matrix", "the tab %q %s", j.Tab, problem)
		}
	}
}

// timeout checks that the job has the time that its longest shard is expected
// to take.
func (v *validator) timeout(j Job) {
	if j.Kind == Postsubmit {
		return
	}
	section, _ := v.source(j, func(s JobSettings) bool { return s.Timeout != 0 })
	field := section + ".timeout"
	left := time.Duration(j.Settings.Timeout)
	if grace := time.Duration(j.Settings.GracePeriod); j.InProw && grace >= left {
		if section, given := v.source(j, func(s JobSettings) bool { return s.GracePeriod != 0 }); given {
			v.once(section+".gracePeriod", "%s is not shorter than the timeout of the job %s, %s: make it shorter", j.Settings.GracePeriod, j.Name, j.Settings.Timeout)
		} else {
			v.once(field, "%s is not longer than the grace period, %s: make it longer", j.Settings.Timeout, j.Settings.GracePeriod)
		}
		return
	}
	if j.Cell.Provider == ProviderKwok {
		return // most of it cannot be tested there
	}
	shards, fix := v.Run.Shards, "make it longer, or run.shards or run.procs larger"
	if j.InProw {
		shards, fix = 1, "make it longer, run.procs larger, or select fewer categories"
	}
	all, longest := v.expect(j)
	need := max(longest, all/time.Duration(shards*max(v.Run.Procs, 1)))
	if j.Cell.Provider == ProviderCAPZ {
		need += j.Cell.Setup()
	}
	if left < need {
		v.once(field, "%s is shorter than the longest shard of the job %s, which is expected to take %s: %s", j.Settings.Timeout, j.Name, Duration(need.Round(time.Minute)), fix)
	}
}

// expect is Config.Expected of a job, found once for all jobs alike.
func (v *validator) expect(j Job) (all, longest time.Duration) {
	key := j.Cell.Version() + " " + string(j.Category)
	d, ok := v.expected[key]
	if !ok {
		d[0], d[1] = v.Expected(j.Cell, v.JobCategories(j))
		v.expected[key] = d
	}
	return d[0], d[1]
}
