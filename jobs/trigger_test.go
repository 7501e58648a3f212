package jobs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	prowapi "sigs.k8s.io/prow/pkg/apis/prowjobs/v1"
	"sigs.k8s.io/prow/pkg/github"

	"github.com/windows-op-readiness/windows-op-readiness/test/prowtest"
)

const triggered = `repository: example/cni
matrix:
  kubernetes: ["1.36", "1.35"]
  windows: ["2022"]
run: {categories: [Core.Network, Core.Storage]}
prow:
  image: registry.example.com/op-readiness:v1
  kubeconfigSecret: kubeconfig-{cell}
  presubmits:
    branches: [^main$, ^release-1\.2$]
    runIfChanged: ["cni/**"]
    cell: {kubernetes: "1.36"}
  overrides:
    - {when: {branches: [release-1.2]}, cell: {kubernetes: "1.35"}}
`

// TestTrigger holds comments against the jobs that Prow starts for them: what
// each of them runs, and on which cluster.
func TestTrigger(t *testing.T) {
	const (
		whole   = "pull-windows-op-readiness"
		network = whole + "-core-network"
		storage = whole + "-core-storage"
	)
	cfg := prowOf(t, parse(t, triggered)).load(t)
	for what, c := range map[string]struct {
		comment, by, author string
		branch, file        string
		failed              []string
		// want are the jobs, as "NAME SECRET"; says is in the answer.
		want []string
		says string
	}{
		"the whole plan":                         {comment: "/test " + whole, want: []string{whole + " kubeconfig-1-36-ltsc2022"}},
		"with other words around":                {comment: "Let us see.\n/test " + whole + "\nThanks!", want: []string{whole + " kubeconfig-1-36-ltsc2022"}},
		"one category, and not the whole":        {comment: "/test " + network, want: []string{network + " kubeconfig-1-36-ltsc2022"}},
		"categories side by side":                {comment: "/test " + network + " " + storage, want: []string{network + " kubeconfig-1-36-ltsc2022", storage + " kubeconfig-1-36-ltsc2022"}},
		"categories on two lines":                {comment: "/test " + network + "\n/test " + storage, want: []string{network + " kubeconfig-1-36-ltsc2022", storage + " kubeconfig-1-36-ltsc2022"}},
		"a branch with another cluster":          {comment: "/test " + whole, branch: "release-1.2", want: []string{whole + " kubeconfig-1-35-ltsc2022"}},
		"a branch that only begins so":           {comment: "/test " + whole, branch: "release-1.20", says: "No presubmit jobs available for example/cni@release-1.20"},
		"a branch without jobs":                  {comment: "/test " + whole, branch: "feature", says: "No presubmit jobs available for example/cni@feature"},
		"all, and the change concerns it":        {comment: "/test all", file: "cni/bridge/bridge.go", want: []string{whole + " kubeconfig-1-36-ltsc2022"}},
		"all, and the change does not":           {comment: "/test all", file: "docs/cni/bridge.md", says: "No jobs can be run with `/test all`"},
		"by name though the change does not":     {comment: "/test " + whole, file: "docs/cni/bridge.md", want: []string{whole + " kubeconfig-1-36-ltsc2022"}},
		"retest what failed":                     {comment: "/retest", failed: []string{network}, want: []string{network + " kubeconfig-1-36-ltsc2022"}},
		"retest with nothing to":                 {comment: "/retest"},
		"retest-required leaves optional ones":   {comment: "/retest-required", failed: []string{network}},
		"a typo":                                 {comment: "/test pull-windows-op-readines", says: "The specified target(s) for `/test` were not found"},
		"a typo is answered with what there is":  {comment: "/test pull-windows-op-readines", says: "`/test " + network + "`"},
		"nothing named":                          {comment: "/test", says: "/test " + whole},
		"a stranger":                             {comment: "/test " + whole, by: "stranger", author: "stranger", says: "Cannot trigger testing until a trusted user reviews"},
		"a stranger on a member's pull request":  {comment: "/test " + whole, by: "stranger", want: []string{whole + " kubeconfig-1-36-ltsc2022"}},
		"a member on a stranger's pull request":  {comment: "/test " + whole, author: "stranger", want: []string{whole + " kubeconfig-1-36-ltsc2022"}},
		"a member lets a stranger's be tested":   {comment: "/ok-to-test", author: "stranger", file: "cni/a.go", want: []string{whole + " kubeconfig-1-36-ltsc2022"}},
		"Prow's own answers":                     {comment: "/test " + whole, by: prowtest.Bot},
		"a comment that only speaks of the jobs": {comment: "What does `/test " + whole + "` do?"},
	} {
		t.Run(what, func(t *testing.T) {
			server, client := prowtest.NewGitHub(t)
			p := server.Open(1, orElse(c.author, prowtest.Member), orElse(c.branch, "main"), orElse(c.file, "README.md"))
			for _, context := range c.failed {
				p.Statuses[context] = github.StatusFailure
			}
			var got []string
			for _, j := range prowtest.Comment(t, cfg, client, p, orElse(c.by, prowtest.Member), c.comment) {
				got = append(got, j.Spec.Job+" "+j.Spec.PodSpec.Volumes[0].Secret.SecretName)
				refs := j.Spec.Refs
				if j.Spec.Type != prowapi.PresubmitJob || j.Spec.Context != j.Spec.Job || len(refs.Pulls) != 1 || refs.Pulls[0].SHA != p.Head.SHA || refs.BaseSHA != p.Base.SHA {
					t.Errorf("%s tests %+v, reports as %s", j.Spec.Job, refs, j.Spec.Context)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
			if answers := strings.Join(p.Comments, "\n"); c.says == "" && answers != "" || !strings.Contains(answers, c.says) {
				t.Errorf("the answer is %q, want %q", answers, c.says)
			}
		})
	}
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// TestTrigger_a_stranger_after_ok_to_test follows one pull request: refused,
// vouched for, and then tested for its author, too.
func TestTrigger_a_stranger_after_ok_to_test(t *testing.T) {
	cfg := prowOf(t, parse(t, triggered)).load(t)
	server, client := prowtest.NewGitHub(t)
	p := server.Open(7, "stranger", "main", "docs/a.md")
	p.Labels = []string{"needs-ok-to-test"}
	const line = "/test pull-windows-op-readiness-core-storage"
	if jobs := prowtest.Comment(t, cfg, client, p, "stranger", line); len(jobs) != 0 || len(p.Comments) != 1 {
		t.Fatalf("a stranger starts %d jobs, and is answered %q", len(jobs), p.Comments)
	}
	prowtest.Comment(t, cfg, client, p, prowtest.Member, "/ok-to-test")
	if diff := cmp.Diff([]string{"ok-to-test"}, p.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if jobs := prowtest.Comment(t, cfg, client, p, "stranger", line); len(jobs) != 1 || jobs[0].Spec.Job != "pull-windows-op-readiness-core-storage" {
		t.Errorf("after /ok-to-test it starts %d jobs", len(jobs))
	}
}
