package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

func (v *validator) prow() {
	p := v.Prow
	v.settings("prow", p.JobSettings)
	v.settings("prow.presubmits", p.Presubmits.JobSettings)
	v.settings("prow.periodics", p.Periodics.JobSettings)
	v.schedule("prow.periodics", p.Periodics.Schedule)
	v.selectors("prow.periodics.cells", p.Periodics.Cells)
	v.categories("prow.presubmits.categories", p.Presubmits.Categories, v.Categories())
	v.patterns("prow.presubmits.branches", p.Presubmits.Branches)
	v.globs("prow.presubmits.runIfChanged", p.Presubmits.RunIfChanged)
	v.version("prow.presubmits.cell", v.cell(&p.Presubmits.Cell))
	v.capzCell("prow.presubmits.cell", v.cell(&p.Presubmits.Cell))
	if post := p.Postsubmit; post != nil {
		v.settings("prow.postsubmit", post.JobSettings)
		v.patterns("prow.postsubmit.branches", post.Branches)
		v.globs("prow.postsubmit.runIfChanged", post.RunIfChanged)
		if len(post.Command)+len(post.Args) == 0 {
			v.add("prow.postsubmit", "has neither command nor args: say what builds the image")
		}
	}
	seen := map[string]bool{}
	for i, preset := range p.Presets {
		key := preset.Label + "=" + preset.Value
		if seen[key] {
			v.add(fmt.Sprintf("prow.presets[%d]", i), "%s is there twice: keep one", preset.Label)
		}
		seen[key] = true
	}
	for i := range p.Overrides {
		v.override(fmt.Sprintf("prow.overrides[%d]", i), &p.Overrides[i])
	}
}

func (v *validator) override(field string, o *Override) {
	v.settings(field, o.JobSettings)
	v.schedule(field, o.Schedule)
	v.categories(field+".when.categories", o.When.Categories, v.Categories())
	selectors := v.selector(field+".when", o.When.Selector)
	if o.Cell != nil {
		v.version(field+".cell", v.cell(o.Cell))
		v.capzCell(field+".cell", v.cell(o.Cell))
		if len(o.When.Branches) == 0 {
			v.add(field+".cell", "is for presubmits of some branches: name them in when.branches")
		}
	}
	if (len(o.When.Branches) > 0 || len(o.When.Categories) > 0) && len(o.given()) > 0 {
		v.add(field, "sets a schedule for presubmits, which have none: remove it, or when.branches and when.categories")
	}
	if selectors && !slices.ContainsFunc(v.Jobs(), func(j Job) bool {
		if len(o.When.Branches) == 0 || j.Kind != Presubmit {
			return o.When.matches(j, "")
		}
		return o.When.matches(j, o.When.Branches[0])
	}) {
		v.add(field+".when", "matches no job: name fewer values, or values that occur together")
	}
}

// reservedEnv are variables that Prow sets itself; it refuses jobs that do.
var reservedEnv = regexp.MustCompile(`^(CI|GOPATH|ARTIFACTS|JOB_.*|BUILD_.*|PULL_.*|REPO_.*|PROW_JOB_ID)$`)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (v *validator) settings(field string, s JobSettings) {
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		switch {
		case !envName.MatchString(name):
			v.add(field+".env."+name, "is not a variable name: use letters, digits and _")
		case reservedEnv.MatchString(name):
			v.add(field+".env."+name, "is set by Prow itself: remove it")
		}
	}
	if s.ServiceAccount != "" && len(validation.IsDNS1123Subdomain(s.ServiceAccount)) > 0 {
		v.add(field+".serviceAccount", "%q is not a service account name: use small letters, digits, - and .", s.ServiceAccount)
	}
	presets := v.Presets()
	for _, label := range slices.Sorted(maps.Keys(s.Labels)) {
		switch at := field + ".labels." + label; {
		case len(validation.IsQualifiedName(label)) > 0:
			v.add(at, "%q is not a label name: use letters, digits, -, _ and ., at most 63", label)
		case len(validation.IsValidLabelValue(s.Labels[label])) > 0:
			v.add(at, "%q is not a label value: use letters, digits, -, _ and ., at most 63", s.Labels[label])
		case strings.HasPrefix(label, "prow.k8s.io/") || label == "created-by-prow":
			v.add(at, "is set by Prow itself: remove it")
		}
		if !strings.HasPrefix(label, "preset-") {
			continue
		}
		var labels, values []string
		for _, p := range presets {
			labels = append(labels, p.Label)
			if p.Label == label {
				values = append(values, p.Value)
			}
		}
		switch at := field + ".labels." + label; {
		case len(values) == 0:
			v.add(at, "unknown preset: %s; or add it to prow.presets", oneOf(label, labels))
		case !slices.Contains(values, s.Labels[label]):
			v.add(at, "%q applies no preset: %s", s.Labels[label], oneOf(s.Labels[label], values))
		}
	}
	workdirs := 0
	seen := map[string]bool{}
	for i, ref := range s.ExtraRefs {
		at := fmt.Sprintf("%s.extraRefs[%d]", field, i)
		name := ref.Org + "/" + ref.Repo
		if seen[name] {
			v.add(at, "%s is there twice: keep one", name)
		}
		seen[name] = true
		if ref.Workdir {
			workdirs++
		}
		if ref.Workdir && v.Prow.Profile == ProfileCAPZ && field != "prow.postsubmit" {
			v.add(at+".workdir", "is set, and jobs of profile capz start in windows-testing: remove it")
		}
		if workdirs > 1 {
			v.add(at+".workdir", "is set for a second repository: a job starts in one")
		}
	}
	v.secretName(field+".kubeconfigSecret", s.KubeconfigSecret)
	declared := append(v.ownDashboards(), v.TestGrid.DeclaredElsewhere...)
	for i, d := range s.Dashboards {
		if !slices.Contains(declared, d) {
			v.add(fmt.Sprintf("%s.dashboards[%d]", field, i), "%q is not declared: %s; or add it to testgrid.declaredElsewhere", d, oneOf(d, declared))
		}
	}
}

func (v *validator) secretName(field, name string) {
	for _, p := range placeholders.FindAllString(name, -1) {
		known := append([]string{"cell"}, axes...)
		if word := strings.Trim(p, "{}"); !slices.Contains(known, word) {
			v.add(field, "%s stands for nothing: %s", p, oneOf(word, known))
		}
	}
}

func (v *validator) schedule(field string, s Schedule) {
	given := s.given()
	slices.Sort(given)
	if len(given) > 1 {
		v.add(field, "has %s: a job has one of every, cron, interval and minimumInterval", strings.Join(given, " and "))
	}
	if s.Every != 0 {
		if err := everyProblem(time.Duration(s.Every)); err != nil {
			v.add(field+".every", "%v", err)
		}
	}
	if s.Cron != "" {
		if _, err := parseCron(s.Cron); err != nil {
			v.add(field+".cron", "%v", err)
		}
	}
}

func (v *validator) patterns(field string, patterns []string) {
	for i, p := range patterns {
		if _, err := regexp.Compile(p); err != nil {
			v.add(fmt.Sprintf("%s[%d]", field, i), "%q is not a regular expression: %s", p, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
	}
}

func (v *validator) globs(field string, globs []string) {
	for i, g := range globs {
		if _, err := globToRegexp(g); err != nil {
			v.add(fmt.Sprintf("%s[%d]", field, i), "%q %v", g, err)
		}
	}
}
