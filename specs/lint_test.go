package specs_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func load(t *testing.T, text string) *specs.Set {
	t.Helper()
	set, _, err := specs.Load(fstest.MapFS{"core-network.yaml": {Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func catalogue(t *testing.T, version string) *specs.TestList {
	t.Helper()
	list, err := specs.Catalogue(version)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestLint(t *testing.T) {
	list := catalogue(t, "1.36.3")
	const begin = "category: Core.Network\ncases:\n  - id: x\n    requirement: Ability to x\n    proof: full\n    duration: 1m\n"
	const placed = "    conditions: {placement: [{pods: a, os: windows}]}\n"
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"as it should be": {
			begin + placed + "    phase: parallel\n    tests: [{focus: 'Services should work after the service has been recreated$', expect: 1}]\n",
			nil,
		},
		"no test": {
			begin + placed + "    phase: parallel\n    tests:\n      - {focus: 'should provide DNS for cluster pods$', expect: 1}\n",
			[]string{`core-network.yaml:10: x: focus "should provide DNS for cluster pods$" matches no test of Kubernetes v1.36.3`, "[sig-network] DNS should provide DNS for the cluster [Conformance]"},
		},
		"another number of tests": {
			begin + placed + "    phase: parallel\n    tests:\n      - {focus: 'DNS should provide DNS for the cluster', expect: 1}\n",
			[]string{"matches 2 tests of Kubernetes v1.36.3, not the 1 that it expects:", "[sig-network] DNS should provide DNS for the cluster [Provider:GCE]"},
		},
		"a serial test beside others": {
			begin + placed + "    phase: parallel\n    tests: [{focus: 'SchedulerPredicates .Serial. validates resource limits of pods', expect: 1}]\n",
			[]string{"is [Serial], but the case's phase is parallel"},
		},
		"a disruptive test among serial ones": {
			begin + placed + "    phase: serial\n    tests: [{focus: ' GracefulNodeShutdown ', expect: 1}]\n",
			[]string{"is [Disruptive], but the case's phase is serial"},
		},
		"a test for Linux": {
			begin + placed + "    phase: parallel\n    tests: [{focus: 'Secondary IP Family .LinuxOnly. should function for pod-Service: http$', expect: 1}]\n",
			[]string{"is [LinuxOnly]: it shows nothing about Windows"},
		},
		"one test selected twice": {
			begin + placed + "    phase: parallel\n    tests: [{focus: 'Services should work after the service has been recreated$', expect: 1}, {focus: 'work after the service has been recreated$', expect: 1}]\n",
			[]string{"is selected twice"},
		},
		"no pod on Windows": {
			begin + "    phase: parallel\n    tests: [{focus: 'Services should work after the service has been recreated$', expect: 1}]\n    conditions: {placement: [{pods: a, os: any}]}\n",
			[]string{"no placement puts a pod on Windows"},
		},
		"steered without need": {
			begin + "    phase: parallel\n    tests: [{focus: 'Services should work after the service has been recreated$', expect: 1}]\n    conditions: {steer: windows, placement: [{pods: a, os: windows}]}\n",
			[]string{"add steer to needs.means"},
		},
		"a link to another line": {
			begin + placed + "    phase: parallel\n    tests: [{focus: 'Services should work after the service has been recreated$', expect: 1}]\n    references: ['https://github.com/kubernetes/kubernetes/blob/v1.36.3/test/e2e/network/service.go#L1172']\n",
			[]string{"is not where one of its tests is"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			problems := specs.Lint(load(t, tt.text), list)
			for _, p := range problems {
				got.WriteString(p.String() + "\n")
				if p.File != "core-network.yaml" || p.Line == 0 || p.Case != "x" {
					t.Errorf("no place and case in %+v", p)
				}
			}
			if len(tt.want) == 0 && len(problems) > 0 || len(tt.want) > 0 && len(problems) != 1 {
				t.Errorf("got %d problems:\n%s", len(problems), got.String())
			}
			for _, want := range tt.want {
				if !strings.Contains(got.String(), want) {
					t.Errorf("got %s\nwant %q in it", got.String(), want)
				}
			}
		})
	}
}

func TestLint_finds_the_reference_implementations_focus_that_matches_nothing(t *testing.T) {
	set, _, err := specs.LoadDir("testdata/load/reference_format")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, p := range specs.Lint(set, catalogue(t, "v1.36.3")) {
		found = append(found, p.String())
	}
	all := strings.Join(found, "\n")
	for _, want := range []string{
		"core-network/spec.yaml:8: core-network-delete-and-recreate-services",
		"recovered\" matches no test of Kubernetes v1.36.3",
		"[sig-network] Services should work after the service has been recreated",
		"ext-worker/spec.yaml:2: category Extend.Worker is empty",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("got %s\nwant %q in it", all, want)
		}
	}
}

func TestLint_list_without_version(t *testing.T) {
	list := *catalogue(t, "1.36.3")
	list.Version = ""
	problems := specs.Lint(load(t, "category: Core.Network\ncases:\n  - {id: x, requirement: r, proof: none, missing: m}\n"), &list)
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "does not say for which Kubernetes") {
		t.Errorf("got %v", problems)
	}
}
