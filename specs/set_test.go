package specs_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{
		"1.36":                  "1.36",
		"v1.36.3":               "1.36.3",
		"1.36.3-gke.100":        "1.36.3",
		"1.36+":                 "1.36",
		"v1.36.0-rc.1+ab12":     "1.36.0",
		"v1.29.3-eks-a18cd3a":   "1.29.3",
		"1.30":                  "1.30",
		"latest":                "",
		"1":                     "",
		"1.3.4.5":               "",
		"":                      "",
		"v1.36.3\t":             "",
		"1.36.99999":            "",
		"v0.0.0-master+$Format": "",
	} {
		v, err := specs.ParseVersion(text)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q: got %v, want an error", text, v)
		case want != "" && (err != nil || v.String() != want):
			t.Errorf("%q: got %v, %v, want %s", text, v, err, want)
		}
	}
}

func TestSet_For_takes_the_highest_variant_that_is_not_above(t *testing.T) {
	variant := func(from, to, focus string) specs.Case {
		return specs.Case{ID: "a", Requirement: "Ability to a", Category: specs.CoreNetwork, Kind: specs.Requirement, Proof: specs.ProofFull,
			Kubernetes: specs.VersionRange{From: from, To: to}, Tests: []specs.Selector{{Focus: focus, Expect: 1}}}
	}
	set := &specs.Set{Cases: []specs.Case{
		variant("1.30", "", "new"),
		variant("1.9", "", "old"),
		variant("1.32", "1.33", "short-lived"),
	}}
	for version, want := range map[string]string{
		"1.8":             "",
		"1.9":             "old",
		"1.22.4":          "old",
		"v1.29.99":        "old",
		"1.30.0":          "new",
		"1.31":            "new",
		"1.32.1-gke.5":    "short-lived",
		"1.33+":           "short-lived",
		"1.34.0":          "new",
		"v2.0.0-alpha.12": "new",
	} {
		cases, err := set.For(version)
		if err != nil {
			t.Fatal(err)
		}
		if len(cases) != 1 {
			t.Fatalf("%s: got %d cases, want 1", version, len(cases))
		}
		c, got := cases[0], ""
		if len(c.Tests) > 0 {
			got = c.Tests[0].Focus
		}
		if got != want {
			t.Errorf("%s: got variant %q, want %q", version, got, want)
		}
		if want == "" && (c.Proof != specs.ProofNone || c.Requirement != "Ability to a" || !strings.Contains(c.Missing, "No test is known for Kubernetes 1.8")) {
			t.Errorf("%s: got %+v", version, c)
		}
	}
	if _, err := set.For("soon"); err == nil {
		t.Error("a version that is none: got no error")
	}
}

func TestSet_For_keeps_the_standards_order(t *testing.T) {
	file := func(category, ids string) *fstest.MapFile {
		text := "category: " + category + "\ncases:\n"
		for id := range strings.FieldsSeq(ids) {
			text += "  - {id: " + id + ", requirement: r, proof: none, missing: m}\n"
		}
		return &fstest.MapFile{Data: []byte(text)}
	}
	set, _, err := specs.Load(fstest.MapFS{
		"a.yaml": file("Extend.Worker", "w2 w1"),
		"b.yaml": file("Core.Storage", "s"),
		"c.yaml": file("Core.Network", "n"),
		"d.yaml": file("Extend.Network", "p"),
	})
	if err != nil {
		t.Fatal(err)
	}
	cases, err := set.For("1.36")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range cases {
		ids = append(ids, c.ID)
	}
	if got := strings.Join(ids, " "); got != "n s p w2 w1" {
		t.Errorf("got %s", got)
	}
}

func TestParseCategory(t *testing.T) {
	for name, want := range map[string]specs.Category{
		"Core.Network":        specs.CoreNetwork,
		"extend.worker":       specs.ExtendWorker,
		"Extend.Network":      specs.ExtendServiceProxy,
		"Extend.ServiceProxy": specs.ExtendServiceProxy,
	} {
		if got, err := specs.ParseCategory(name); err != nil || got != want {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
	_, err := specs.ParseCategory("Core.Netwrk")
	if err == nil || !strings.Contains(err.Error(), "did you mean Core.Network?") {
		t.Errorf("got error %v", err)
	}
}

func TestNearest(t *testing.T) {
	allowed := []string{"Core.Network", "Core.Storage", "Extend.HostProcess", "exec"}
	for name, want := range map[string]string{
		"Core.Netwrk":   "Core.Network",
		"core.storage":  "Core.Storage",
		"HostProcess":   "Extend.HostProcess",
		"exce":          "exec",
		"zzz":           "",
		"":              "",
		"Core.Stroages": "Core.Storage",
	} {
		if got := specs.Nearest(name, allowed); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestCapabilities(t *testing.T) {
	all := specs.Capabilities()
	if !slices.IsSortedFunc(all, func(a, b specs.Capability) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("not sorted")
	}
	for _, c := range all {
		if found, ok := specs.LookupCapability(c.Name); !ok || found != c || c.Means == "" {
			t.Errorf("%s: got %+v", c.Name, found)
		}
	}
	if _, ok := specs.LookupCapability("telepathy"); ok {
		t.Error("telepathy is a capability")
	}
	for name, want := range map[string]bool{"exec": true, "steer": false, "linux-worker": false, "hpc": true} {
		c := specs.Case{Needs: specs.Needs{Means: []string{"untainted-win", name}}}
		if got := c.NeedsContainers(); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestCapabilities_are_in_the_README(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range specs.Capabilities() {
		line := "| `" + c.Name + "` | " + c.Means
		if c.Feature {
			line += ". May be a condition"
		}
		if !strings.Contains(string(readme), line+" |\n") {
			t.Errorf("not in README.md: %s |", line)
		}
	}
}
