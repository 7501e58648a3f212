package e2e_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
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

func TestArgumentsThatMayNotBePassedOn(t *testing.T) {
	for arg, says := range map[string]string{
		"--ginkgo.focus=x":                    "op-readiness itself selects the tests",
		"-ginkgo.skip=x":                      "op-readiness itself selects the tests",
		"--ginkgo.json-report=/tmp/x":         "op-readiness itself selects the tests",
		"--test.run=x":                        "Go's test runner",
		"--report-dir=/tmp":                   "see the results folder",
		"--spec-dump=/etc/passwd":             "see the results folder",
		"--kubeconfig=other":                  "use op-readiness's own flag --kubeconfig",
		"--context=other":                     "use op-readiness's own flag --context",
		"--kubectl-path=/tmp/kubectl":         "use op-readiness's own flag --kubectl",
		"--dns-domain=x":                      "use op-readiness's own flag --dns-domain",
		"--provider=gce":                      "use op-readiness's own flag --provider",
		"--node-os-distro=debian":             "op-readiness sets it itself",
		"--host=https://elsewhere":            "another API server",
		"-host=https://elsewhere":             "another API server",
		"--cert-dir=/tmp":                     "another API server",
		"--kubemark-external-kubeconfig=x":    "another API server",
		"--clean-start=true":                  "deletes all namespaces",
		"--delete-namespace=false":            "changes the tests after it",
		"--delete-namespace-on-failure=false": "changes the tests after it",
		"--num-nodes=1000":                    "e2e.test counts the nodes",
		"--list-tests=true":                   "run no test",
		"--gce-upgrade-script=/tmp/x":         "replace the cluster's version",
		"--storage_driver_host=x":             "belongs to a library",
		"--no-such-flag=1":                    "knows no flag --no-such-flag of e2e.test that may be passed on: leave it out; these may: --prepull-images, ",
		"--HOST=x":                            "knows no flag --HOST",
		"--host":                              "write it as --flag=value",
		"--prepull-images":                    "write it as --flag=value",
		"--prepull-images true":               "write it as --flag=value",
		"--prepull-images true --host=x":      "write it as --flag=value",
		"---prepull-images=true":              "write it as --flag=value",
		"prepull-images=true":                 "write it as --flag=value",
		"--":                                  "write it as --flag=value",
		"-":                                   "write it as --flag=value",
		"--=x":                                "write it as --flag=value",
		"":                                    "write it as --flag=value",
	} {
		err := e2e.CheckExtra([]string{"--prepull-images=true", arg})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", arg)) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q in it", arg, err, says)
		}
	}
}

func TestArgumentsThatArePassedOn(t *testing.T) {
	extra := []string{"--prepull-images=true", "-v=4", "--docker-config-file=/tmp/a=b c", "--minStartupPods=-1"}
	if err := e2e.CheckExtra(extra); err != nil {
		t.Error(err)
	}
	flags := e2e.Flags{Extra: extra}
	if args := flags.Args(); !slices.Equal(args[len(args)-len(extra):], extra) {
		t.Errorf("arguments %q", args)
	}
	// What this program sets itself can be set by nobody else.
	all := e2e.Flags{Kubeconfig: "x", Context: "x", Provider: "x", Kubectl: "x", DNSDomain: "x", DockerConfig: "x", RepoList: "x"}
	for _, arg := range all.BatchArgs([]string{"a"}, 1, "report", time.Hour) {
		if err := e2e.CheckExtra([]string{arg}); err == nil {
			t.Errorf("%s is passed on", arg)
		}
	}
}

// Of every flag that e2e.test has, it is decided whether it may be passed on.
// Package test/e2e holds the list to the real e2e.test.
func TestEveryFlagIsClassified(t *testing.T) {
	list, err := os.ReadFile("testdata/flags-v1.36.3.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(list)) {
		if err := e2e.CheckExtra([]string{"--" + name + "=x"}); err != nil && strings.Contains(err.Error(), "knows no flag") {
			t.Errorf("--%s is in no class: see what it does, and add it to flagClasses", name)
		}
	}
}
