package e2e_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func TestArgsForWindows(t *testing.T) {
	plain := e2e.Flags{Kubeconfig: "/kc"}
	want := []string{
		"--node-os-distro=windows", "--provider=skeleton",
		"--non-blocking-taints=node-role.kubernetes.io/control-plane,node-role.kubernetes.io/master",
		"--allowed-not-ready-nodes=0", "--disable-log-dump=true", "--kubeconfig=/kc",
	}
	if got := plain.Args(); !slices.Equal(got, want) {
		t.Errorf("args %q", got)
	}
	all := e2e.Flags{
		Kubeconfig: "/kc", Context: "c", Provider: "local", Kubectl: "/kubectl", NonBlockingTaints: []string{"os"},
		AllowedNotReadyNodes: -1, DNSDomain: "example.com", DockerConfig: "/docker.json", RepoList: "/repos.yaml",
	}
	got := all.BatchArgs([]string{"a"}, 7, "/report.json", time.Hour)
	for _, flag := range []string{
		"--provider=local", "--non-blocking-taints=node-role.kubernetes.io/control-plane,node-role.kubernetes.io/master,os",
		"--allowed-not-ready-nodes=-1", "--context=c", "--kubectl-path=/kubectl", "--dns-domain=example.com",
		"--e2e-docker-config-file=/docker.json", "--kube-test-repo-list=/repos.yaml", "--ginkgo.seed=7",
		"--ginkgo.timeout=1h0m0s", "--ginkgo.json-report=/report.json", "--ginkgo.v", "--ginkgo.no-color",
		"--ginkgo.flake-attempts=1", "--ginkgo.focus=^Kubernetes e2e suite (a)$",
	} {
		if !slices.Contains(got, flag) {
			t.Errorf("%q lacks %s", got, flag)
		}
	}
}

// focus compiles the focus flags as ginkgo does: they are alternatives.
func focus(t *testing.T, names []string) []*regexp.Regexp {
	t.Helper()
	var out []*regexp.Regexp
	for _, arg := range e2e.FocusArgs(names) {
		text, ok := strings.CutPrefix(arg, "--ginkgo.focus=")
		if !ok || len(arg) > 100<<10 {
			t.Fatalf("argument of %d bytes: %.100s", len(arg), arg)
		}
		out = append(out, regexp.MustCompile(text))
	}
	return out
}

func selects(focus []*regexp.Regexp, name string) bool {
	return slices.ContainsFunc(focus, func(re *regexp.Regexp) bool { return re.MatchString(specs.SuiteName + " " + name) })
}

// Each name selects itself and nothing else of the whole catalogue. Whatever a
// focus matches contains its name, which spares most of the 57 million
// comparisons.
func TestFocusSelectsExactlyTheNamedTests(t *testing.T) {
	list, err := specs.Catalogue("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	names := list.Names()
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Error("two tests of the catalogue have the same name")
	}
	all := "\n" + specs.SuiteName + " " + strings.Join(names, "\n"+specs.SuiteName+" ") + "\n"
	for i, name := range names {
		re := focus(t, []string{name})
		if !selects(re, name) {
			t.Fatalf("a focus does not select its own test %q", name)
		}
		// Those that begin with it follow it in the order of names.
		for _, other := range names[i+1:] {
			if !strings.HasPrefix(other, name) {
				break
			}
			if selects(re, other) {
				t.Fatalf("the focus of %q selects %q", name, other)
			}
		}
		multi := regexp.MustCompile("(?m)" + re[0].String())
		if i%500 == 0 && len(multi.FindAllStringIndex(all, 3)) != 1 {
			t.Fatalf("the focus of %q does not select exactly one of all tests", name)
		}
	}
}

func TestFocusOfMoreThanAnArgumentHolds(t *testing.T) {
	list, err := specs.Catalogue("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	names := list.Names()
	half := make([]string, 0, len(names)/2)
	for i := 0; i < len(names); i += 2 {
		half = append(half, names[i])
	}
	res := focus(t, half)
	if len(res) < 2 {
		t.Fatalf("%d tests fit into %d argument", len(half), len(res))
	}
	for i := range 300 {
		if selects(res, names[i]) != (i%2 == 0) {
			t.Errorf("wrong about %q", names[i])
		}
	}
	if args := e2e.FocusArgs(nil); len(args) != 0 {
		t.Errorf("no name makes %q", args)
	}
}

func TestExtraArgumentsThatWouldHijackTheSuiteAreRefused(t *testing.T) {
	for _, arg := range []string{"--ginkgo.focus=x", "-ginkgo.skip", "--report-dir=/tmp", "--kubeconfig=other", "--list-tests", "prepull", ""} {
		if err := e2e.CheckExtra([]string{arg}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", arg)) {
			t.Errorf("%q: %v", arg, err)
		}
	}
	extra := []string{"--prepull-images=true", "--delete-namespace-on-failure=false"}
	if err := e2e.CheckExtra(extra); err != nil {
		t.Error(err)
	}
	flags := e2e.Flags{Extra: extra}
	if args := flags.Args(); !slices.Equal(args[len(args)-2:], extra) {
		t.Errorf("arguments %q", args)
	}
}
