package specs_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func standard(t *testing.T) *specs.Set {
	t.Helper()
	set, err := specs.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func catalogues(t *testing.T) []*specs.TestList {
	t.Helper()
	var lists []*specs.TestList
	for _, v := range specs.Catalogues() {
		list, err := specs.Catalogue(v)
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, list)
	}
	return lists
}

func TestStandard_lints_clean_against_every_catalogue(t *testing.T) {
	lists := catalogues(t)
	if len(lists) < 2 {
		t.Fatalf("got %d catalogues", len(lists))
	}
	for _, p := range specs.Lint(standard(t), lists...) {
		t.Error(p)
	}
}

// The whole standard in a few lines a case: a change of it is seen in review.
func TestStandard_is_as_reviewed(t *testing.T) {
	var out strings.Builder
	for _, version := range specs.Catalogues() {
		list, err := specs.Catalogue(version)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := standard(t).For(version)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "Kubernetes %s\n", version)
		for _, c := range cases {
			fmt.Fprintf(&out, "\n%s %s %s %s %s\n", c.Category, c.ID, c.Kind, c.Proof, c.Phase)
			for _, s := range c.Tests {
				for _, name := range s.Match(append(list.Names(), specs.OwnTests().Names()...)) {
					fmt.Fprintf(&out, "  %s\n", name)
				}
			}
		}
		out.WriteByte('\n')
	}
	golden.Equal(t, "standard.golden", out.String())
}

func TestStandard_has_every_requirement(t *testing.T) {
	type count struct{ full, part, none int }
	want := map[specs.Category]count{
		specs.CoreNetwork:           {8, 3, 2},
		specs.CoreStorage:           {5, 1, 1},
		specs.CoreScheduling:        {0, 2, 0},
		specs.CoreConcurrent:        {0, 3, 0},
		specs.ExtendHostProcess:     {1, 3, 2},
		specs.ExtendActiveDirectory: {1, 2, 1},
		specs.ExtendNetworkPolicy:   {2, 0, 0},
		specs.ExtendServiceProxy:    {0, 1, 4},
		specs.ExtendWorker:          {0, 1, 3},
	}
	for _, version := range specs.Catalogues() {
		c, err := specs.Cover(standard(t), version)
		if err != nil {
			t.Fatal(err)
		}
		if !c.Checked {
			t.Errorf("%s is not checked against a list of tests", version)
		}
		if got := (count{c.Total.Full, c.Total.Part, c.Total.None}); got != (count{17, 16, 13}) || c.Total.Requirements != 46 {
			t.Errorf("%s: got %v of %d requirements, want 17, 16 and 13 of 46", version, got, c.Total.Requirements)
		}
		for _, line := range c.Categories {
			if got := (count{line.Full, line.Part, line.None}); got != want[line.Category] {
				t.Errorf("%s, %s: got %v, want %v", version, line.Category, got, want[line.Category])
			}
		}
		if len(c.Categories) != len(want) {
			t.Errorf("%s: got %d categories, want %d", version, len(c.Categories), len(want))
		}
	}
	rules := 0
	for _, c := range standard(t).Cases {
		if c.Kind == specs.Rule {
			rules++
		}
	}
	if rules != 8 {
		t.Errorf("got %d rules, want 8", rules)
	}
}

func TestStandard_requirements_do_not_disappear_from_old_versions(t *testing.T) {
	for _, version := range []string{"1.20", "1.32.13"} {
		c, err := specs.Cover(standard(t), version)
		if err != nil {
			t.Fatal(err)
		}
		if c.Total.Requirements != 46 || c.Total.None != 46 || c.Checked {
			t.Errorf("%s: got %+v, want 46 requirements without proof", version, c.Total)
		}
	}
}

func TestStandard_cases_hold_together(t *testing.T) {
	known := map[specs.Category]string{}
	for _, c := range specs.Categories() {
		known[c] = map[bool]string{true: "core-", false: "ext-"}[c.Core()]
	}
	for _, c := range standard(t).Cases {
		bad := func(format string, args ...any) { t.Errorf("%s: %s", c.ID, fmt.Sprintf(format, args...)) }
		prefix := known[c.Category]
		switch c.Kind {
		case specs.Rule:
			prefix = "cluster-"
		case specs.Additional:
			prefix = "extra-"
			if c.Gates() {
				bad("an additional case gates")
			}
		case specs.Trial:
			if strings.HasPrefix(c.ID, "extra-") {
				prefix = "extra-" // what it was, and is again when the trial ends
			}
		}
		if !strings.HasPrefix(c.ID, prefix) {
			bad("its id does not begin with %s", prefix)
		}
		if len(c.Tests) > 0 && (c.Timeout < c.Duration/10 || c.Timeout == 0 || !slices.Contains(specs.Minors(), c.Kubernetes.From)) {
			bad("timeout %v, duration %v, from %q", c.Timeout, c.Duration, c.Kubernetes.From)
		}
		if slices.Contains(c.Labels, specs.LabelAPIOnly) && c.NeedsContainers() {
			bad("label api-only, but it needs %v", c.Needs)
		}
		if c.Kind == specs.Requirement && c.Proof == specs.ProofFull && !c.NeedsContainers() {
			bad("it claims full proof about Windows, and simulated nodes would do")
		}
		if c.Category == specs.ExtendWorker && c.Gates() {
			bad("a worker case gates")
		}
		if len(c.References) == 0 {
			bad("no references")
		}
	}
}

// The names are those that the tests' source gives their pods, a generated one
// with its prefix and an ending.
func TestStandard_pods_are_told_apart_by_name(t *testing.T) {
	const (
		netserver = "netserver-0 netserver-9"
		uuid      = "5f2e0e8c-9f3a-4b1e-8a55-0d3c1b8f7a11"
	)
	tests := []struct {
		id string
		// steered are pods that the case's steering must reach, free those
		// that it must leave alone.
		steered, free string
		// onWindows and onLinux are pods that must be there, either those that
		// are observed on any.
		onWindows, onLinux, either string
	}{
		{"core-network-service-ip-win-to-linux", "test-container-pod", netserver + " host-test-container-pod", "test-container-pod", "", netserver},
		{"core-network-service-ip-linux-to-win", "test-container-pod", netserver, "", "test-container-pod", netserver},
		{"core-network-nodeport-win-to-linux", "test-container-pod", netserver, "test-container-pod", "", netserver},
		{"core-network-nodeport-linux-to-win", "test-container-pod", netserver, "", "test-container-pod", netserver},
		{"core-network-pod-ip-win-to-linux", "", "", "", "", "pod-" + uuid},
		{"core-network-service-recreate", "service-deletion-6d5f-abcde service-deletion-6d5f- verify-service-up-exec-pod-", "verify-service-up-host-exec-pod", "service-deletion-6d5f-abcde verify-service-up-exec-pod-x2x4z", "", "verify-service-up-host-exec-pod"},
		{"core-network-internal-dns", "pod1 execpod", "", "pod1 pod2 execpodx7f2k", "", ""},
		{"core-network-external-dns", "", "", "pod-" + uuid, "", ""},
		{"core-network-custom-dns", "", "", "e2e-dns-utils", "", ""},
		{"core-network-endpointslice-routing", "pause-pod-0", "", "pod-handle-http-request pod1-handle-http-request pod2-handle-http-request pause-pod-0", "", ""},
		{"core-storage-hostpath-write", "", "", "pod-" + uuid, "", ""},
		{"core-storage-service-account-rotation", "inclusterclient", "", "inclusterclient", "", ""},
		{"core-storage-three-container-share", "", "", "pod-sharedvolume-" + uuid, "", ""},
		{"core-scheduling-limits-honored", "", "", "cpulimittest-" + uuid, "", ""},
		{"core-scheduling-insufficient-pending", "", "", "", "", "mem-test-" + uuid + " filler-pod-" + uuid},
		{"core-concurrent-deployment-churn-50", "webserver-7c9d-", "", "webserver-7c9d-x8k2p", "", ""},
		{"ext-hpc-apiserver-access", "", "", "host-process-agnhost-icc", "", ""},
		{"ext-hpc-shares-node-ip", "", "", "host-process-test-pod", "", ""},
		{"ext-hpc-privileged-api", "", "", "host-process-localgroup-pod host-process-init-pods", "", ""},
		{"ext-hpc-bind-host-interface", "", "", "", "", netserver},
		{"ext-ad-gmsa-identity", "pod-with-gmsa", "webhook-deployer retrieve-gmsa-crd-contents", "pod-with-gmsa", "", ""},
		{"ext-ad-runasusername", "", "", "run-as-username-" + uuid, "", ""},
		{"ext-netpol-block-pod", "", "", "a b c", "", ""},
		{"ext-proxy-dual-stack-pods", "dualstack-server-6d5f-", "", "dualstack-server-6d5f-abcde dualstack-client-6d5f-abcde pod-dualstack-ips", "", ""},
		{"ext-worker-node-to-nodeport", "host-test-container-pod", netserver + " test-container-pod", "", "host-test-container-pod", netserver},
	}
	cases := map[string]specs.Case{}
	for _, c := range standard(t).Cases {
		cases[c.ID] = c
	}
	for _, tt := range tests {
		c, ok := cases[tt.id]
		if !ok {
			t.Errorf("no case %s", tt.id)
			continue
		}
		steers := func(pod string) bool {
			return c.Conditions.Steer != "" && regexp.MustCompile(c.Conditions.SteerPods).MatchString(pod)
		}
		for _, pod := range strings.Fields(tt.steered) {
			if !steers(pod) {
				t.Errorf("%s does not steer %s", tt.id, pod)
			}
		}
		for _, pod := range strings.Fields(tt.free) {
			if steers(pod) {
				t.Errorf("%s steers %s", tt.id, pod)
			}
		}
		for os, pods := range map[specs.OS]string{specs.Windows: tt.onWindows, specs.Linux: tt.onLinux, specs.AnyOS: tt.either} {
			for _, pod := range strings.Fields(pods) {
				if !slices.ContainsFunc(c.Conditions.Placement, func(p specs.Placement) bool {
					return p.OS == os && regexp.MustCompile(p.Pods).MatchString(pod)
				}) {
					t.Errorf("%s does not want %s on %s", tt.id, pod, os)
				}
			}
		}
	}
}

// The lists that come with the package are those of the real binaries. Where
// one is at hand, named in E2E_TEST_BINARIES, it is asked.
func TestCatalogue_is_what_the_real_binary_lists(t *testing.T) {
	binaries := filepath.SplitList(os.Getenv("E2E_TEST_BINARIES"))
	if len(binaries) == 0 {
		t.Skip("E2E_TEST_BINARIES names no e2e.test")
	}
	for _, binary := range binaries {
		version, err := exec.Command(binary, "--version").Output()
		if err != nil {
			t.Fatalf("%s --version: %v", binary, err)
		}
		out, err := exec.Command(binary, "--list-tests").Output()
		if err != nil {
			t.Fatalf("%s --list-tests: %v", binary, err)
		}
		real, err := specs.ParseTestList(bytes.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		known, err := specs.Catalogue(strings.TrimSpace(string(version)))
		if err != nil {
			t.Error(err)
			continue
		}
		if !slices.Equal(known.Tests, real.Tests) {
			t.Errorf("the catalogue of %s has %d tests, %s lists %d: run scripts/catalogue.sh %s", known.Version, len(known.Tests), binary, len(real.Tests), binary)
		}
	}
}
