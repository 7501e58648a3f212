package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// validator gathers what a schema cannot say.
type validator struct {
	*Config
	problems Problems
	expected map[string][2]time.Duration
}

func (v *validator) add(field, format string, args ...any) {
	v.problems = append(v.problems, v.Problem(field, format, args...))
}

// once is add for what many jobs have in common: the first of a field is
// enough.
func (v *validator) once(field, format string, args ...any) {
	if !slices.ContainsFunc(v.problems, func(p Problem) bool { return p.Field == field }) {
		v.add(field, format, args...)
	}
}

func (c *Config) validate() Problems {
	v := &validator{Config: c, expected: map[string][2]time.Duration{}}
	if !v.size() {
		return v.problems
	}
	v.matrix()
	v.results()
	v.testGrid()
	if c.Prow != nil {
		v.prow()
	}
	if c.GitHub != nil {
		v.gitHub()
	}
	if len(v.problems) == 0 {
		// The rest follows from all of the above.
		v.jobs()
	}
	return v.problems
}

// Limits of a matrix. kubernetes/test-infra has some 3,000 jobs in all.
const (
	maxCombinations = 5000
	// maxGitHubMatrix is how many jobs a matrix of GitHub Actions may have.
	// https://docs.github.com/actions/reference/limits
	maxGitHubMatrix = 256
)

// size refuses a matrix before anybody multiplies it out.
func (v *validator) size() bool {
	n := 1
	for _, axis := range axes {
		if n *= len(v.values(axis)); n > 1e6 {
			break
		}
	}
	if n += len(v.Matrix.Include); n > maxCombinations {
		v.add("matrix", "has more than %d combinations: use fewer values, and include for those that matter", maxCombinations)
		return false
	}
	return true
}

func (v *validator) matrix() {
	m := &v.Matrix
	seen := map[string]int{}
	for i, version := range m.Kubernetes {
		if first, again := seen[normal(version)]; again {
			v.add(fmt.Sprintf("matrix.kubernetes[%d]", i), "%q is the same as %q: keep one", version, m.Kubernetes[first])
		}
		seen[normal(version)] = i
	}
	all := v.combinations()
	for i, s := range m.Exclude {
		field := fmt.Sprintf("matrix.exclude[%d]", i)
		if v.selector(field, s) && !slices.ContainsFunc(all, s.Matches) {
			v.add(field, "matches no cell, so it leaves out nothing: remove it, or name values that occur together")
		}
	}
	cells := v.Cells()
	if len(cells) == 0 && len(all) > 0 {
		v.add("matrix.exclude", "leaves out every cell, so there is nothing to test: exclude less, or include some")
	}
	place := map[Cell]string{}
	for i, cell := range cells {
		field := "matrix"
		if at := i - (len(cells) - len(m.Include)); at >= 0 {
			field = fmt.Sprintf("matrix.include[%d]", at)
		}
		if _, again := place[cell]; again && field != "matrix" {
			v.add(field, "adds the cell %s, which is there already: remove it", cell.Title)
		}
		place[cell] = field
		v.version(field, cell)
		v.capzCell(field, cell)
		if cell.Provider == ProviderKwok && cell.Simulated() == "" {
			v.once(field, "the cell %s is simulated, and Kubernetes %s is not a release that can be fetched for it: name one with its patch, such as %s", cell.Title, cell.Kubernetes, specs.Catalogues()[len(specs.Catalogues())-1])
		}
	}
	v.categories("run.categories", v.Run.Categories, specs.Categories())
}

// selector checks that everything that a selector names is a value of its
// axis, or of an included cell; else it could match nothing.
func (v *validator) selector(field string, s Selector) bool {
	ok := true
	for _, axis := range axes {
		known := slices.Clone(v.values(axis))
		for i := range v.Matrix.Include {
			value, _ := v.cell(&v.Matrix.Include[i]).axis(axis)
			if !slices.Contains(known, value) {
				known = append(known, value)
			}
		}
		for _, value := range s.axis(axis) {
			if !slices.Contains(known, value) {
				v.add(field+"."+axis, "%q is not in the matrix: %s", value, oneOf(value, known))
				ok = false
			}
		}
	}
	return ok
}

// categories checks that names are among the allowed ones.
func (v *validator) categories(field string, names []string, allowed []specs.Category) {
	var texts []string
	for _, c := range allowed {
		texts = append(texts, string(c))
	}
	for i, name := range names {
		if !slices.Contains(texts, name) {
			v.add(fmt.Sprintf("%s[%d]", field, i), "%q is not among run.categories: %s", name, oneOf(name, texts))
		}
	}
}

// version refuses a cell of a Kubernetes version against which no case of the
// standard was checked: nothing would be tested.
func (v *validator) version(field string, cell Cell) {
	if cell.Version() == "" {
		return // the branch where Kubernetes is developed
	}
	if _, err := specs.CheckVersion(cell.Version()); err != nil {
		if field == "matrix" {
			field = "matrix.kubernetes"
		}
		v.once(field, "the cell %s would test nothing: %v", cell.Title, err)
	}
}

// capzRuntimes are the versions of containerd that run-capz-e2e.sh and the
// presets of sig-windows know.
var capzRuntimes = []string{"containerd", "containerd-1.7", "containerd-2.0", "containerd-nightly"}

// capzCell checks that the profile can make the cluster, and that nothing else
// is asked to.
func (v *validator) capzCell(field string, cell Cell) {
	capz := v.Prow != nil && v.Prow.Profile == ProfileCAPZ
	axis := func(name string) string {
		if field == "matrix" {
			return "matrix." + name
		}
		return field
	}
	switch {
	case !capz && cell.Provider == ProviderCAPZ:
		v.once(axis("provider"), "the cell %s is to be made by capz: set prow.profile: capz, or another provider", cell.Title)
	case !capz:
	case cell.Provider == ProviderKwok:
	case cell.Provider != ProviderCAPZ:
		v.once(axis("provider"), "the cell %s has provider %s, and prow.profile capz knows capz and kwok only: use one of them, or profile plain", cell.Title, cell.Provider)
	case cell.Branch() == "" && strings.Count(cell.Kubernetes, ".") == 2:
		v.once(axis("kubernetes"), "the cell %s names the patch %s, and run-capz-e2e.sh takes only the newest build of a branch: write release-%s", cell.Title, cell.Kubernetes, cell.Kubernetes[:strings.LastIndex(cell.Kubernetes, ".")])
	case cell.CNI != "" && cell.CNI != "calico":
		v.once(axis("cni"), "the cell %s has CNI %s, and run-capz-e2e.sh installs calico: set that", cell.Title, cell.CNI)
	case !slices.Contains(capzRuntimes, cell.Runtime):
		v.once(axis("runtime"), "the cell %s has runtime %s: for profile capz %s", cell.Title, cell.Runtime, oneOf(cell.Runtime, capzRuntimes))
	}
}

func (v *validator) results() {
	r := &v.Results
	if r.PathStrategy != "explicit" && r.DefaultRepo == "" {
		v.add("results.pathStrategy", "%s leaves defaultRepo out of paths: name it", r.PathStrategy)
	}
	if r.PathStrategy != "explicit" && r.DefaultOrg == "" {
		v.add("results.pathStrategy", "%s leaves defaultOrg out of paths: name it", r.PathStrategy)
	}
	if r.PathStrategy == "explicit" && r.DefaultOrg+r.DefaultRepo != "" {
		v.add("results.pathStrategy", "explicit leaves nothing out of paths: take defaultOrg and defaultRepo away, or use legacy or single")
	}
	if r.Bucket == "" && r.PathPrefix != "" {
		v.add("results.pathPrefix", "is a folder in results.bucket, which is not there: name it")
	}
	for _, part := range strings.Split(r.PathPrefix, "/") {
		if part == "." || part == ".." {
			v.add("results.pathPrefix", "has %s for a folder: write the path from the bucket's root", part)
		}
	}
}

// selectors checks that each of them matches a cell.
func (v *validator) selectors(field string, all []Selector) {
	for i, s := range all {
		at := fmt.Sprintf("%s[%d]", field, i)
		if v.selector(at, s) && !slices.ContainsFunc(v.Cells(), s.Matches) {
			v.add(at, "matches no cell: name fewer values, or values that occur together")
		}
	}
}

func (v *validator) gitHub() {
	g := v.GitHub
	v.expressions()
	v.gitHubSecret("github.kubeconfigSecret", g.KubeconfigSecret)
	for i, o := range g.Overrides {
		field := fmt.Sprintf("github.overrides[%d]", i)
		v.gitHubSecret(field+".kubeconfigSecret", o.KubeconfigSecret)
		if v.selector(field+".when", o.When) && !slices.ContainsFunc(v.Cells(), o.When.Matches) {
			v.add(field+".when", "matches no cell: name fewer values, or values that occur together")
		}
	}
	if s := g.Scheduled; s != nil {
		v.schedule("github.scheduled", Schedule{Every: s.Every, Cron: s.Cron})
		v.selectors("github.scheduled.cells", s.Cells)
	}
	if p := g.PullRequests; p != nil {
		v.globs("github.pullRequests.paths", p.Paths)
		v.selectors("github.pullRequests.cells", p.Cells)
	}
	if g.PullRequests == nil && g.Scheduled == nil {
		v.add("github", "has neither pullRequests nor scheduled, so nothing would ever run: add one, or take github away")
	}
	if g.Publish != nil && !strings.HasPrefix(v.Results.Bucket, "gs://") {
		v.add("github.publish", "goes to results.bucket with a Google Cloud identity: set that to gs://NAME, not %q", v.Results.Bucket)
	}
	scheduled, pulled := v.ScheduledCells(), v.PullRequestCells()
	for field, cells := range map[string][]Cell{"github.scheduled": scheduled, "github.pullRequests": pulled} {
		for _, cell := range cells {
			if cell.Provider == ProviderCAPZ {
				v.add(field+".cells", "GitHub Actions cannot make the cluster of cell %s: only Prow's profile capz does; select others", cell.Title)
			}
		}
	}
	if g.Scheduled != nil && len(scheduled) == 0 {
		v.add("github.scheduled", "has no cell to test: all are of capz, which only Prow can make; add others, or remove it")
	}
	if g.PullRequests != nil && len(pulled) == 0 {
		v.add("github.pullRequests", "has no cell to test: all are of capz, which only Prow can make; add others, or remove it")
	}
	if len(scheduled) > maxGitHubMatrix {
		v.add("github.scheduled", "has %d cells, and GitHub Actions take at most %d: name fewer with cells", len(scheduled), maxGitHubMatrix)
	}
	secrets := map[string]Cell{}
	for _, cell := range append(scheduled, pulled...) {
		if cell.Provider != ProviderKwok {
			v.oneCluster("github.kubeconfigSecret", v.GitHubSettingsFor(cell).KubeconfigSecret, cell, secrets)
		}
	}
}

// oneCluster notes that two cells would test one cluster.
func (v *validator) oneCluster(field, secret string, cell Cell, secrets map[string]Cell) {
	if other, again := secrets[secret]; again && other != cell {
		if other.Title == cell.Title {
			return // jobNames says what is wrong
		}
		v.add(field, "the cells %s and %s have the same kubeconfig, %s, so they would be one cluster: put {cell} into its name, or use overrides", other.Title, cell.Title, secret)
		return
	}
	secrets[secret] = cell
}
