//go:build unix

package kind_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/defaults"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kind"
)

func TestWrongRequestsAreNamedInFull(t *testing.T) {
	config := filepath.Join(t.TempDir(), "kind.yaml")
	if err := os.WriteFile(config, []byte("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha3\nname: other\nnodes: [{role: worker}]\nnetworking: {ipFamily: ipv6}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := providerWith(t, map[string]string{"docker": answers})
	r := aRequest()
	r.Name, r.LinuxNodes, r.WindowsNodes, r.WindowsVersion, r.KubernetesVersion = "../x", -1, 101, "xp", "v1.12.0"
	r.Owner, r.Run = "a\nb", strings.Repeat("r", 256)
	r.Set = map[string]string{"bind-address": "0.0.0.0", kind.Config: config}
	_, err := p.Plan(t.Context(), r)
	wants(t, err, `"../x"`, "-1 Linux", "101 Windows", `"xp"`, `owner "a\nb"`, `run "rrr`,
		`unknown setting "bind-address": kind has config, engine, image`,
		"no node image of Kubernetes v1.12.0", "--set image=", strings.Join(kind.Versions(), ", "),
		config, "kind.x-k8s.io/v1alpha4", "--name", "--linux-nodes", "ipv4 or dual")

	r = aRequest()
	r.Set = map[string]string{kind.Image: "--privileged", kind.Config: filepath.Join(t.TempDir(), "none.yaml")}
	_, err = p.Plan(t.Context(), r)
	wants(t, err, `image "--privileged"`, "none.yaml")
}

func TestUnknownFieldsOfKindsConfigurationAreNamed(t *testing.T) {
	config := filepath.Join(t.TempDir(), "kind.yaml")
	if err := os.WriteFile(config, []byte("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetwork: {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := aRequest()
	r.Set = map[string]string{kind.Config: config}
	_, err := providerWith(t, map[string]string{"docker": answers}).Plan(t.Context(), r)
	wants(t, err, config, "line 3", "network")
}

func TestAPlanSaysWhatWillExist(t *testing.T) {
	p := providerWith(t, map[string]string{"podman": answers})
	plan, err := p.Plan(t.Context(), aRequest())
	if err != nil {
		t.Fatal(err)
	}
	if plan.KubernetesVersion != kind.DefaultVersion() {
		t.Errorf("version %s, want %s", plan.KubernetesVersion, kind.DefaultVersion())
	}
	objects := strings.Join(plan.Objects, "\n")
	for _, part := range []string{
		"podman volume op-readiness-op-readiness",
		"op-readiness-control-plane, op-readiness-worker, op-readiness-worker2",
		"a control plane and 2 workers, of kindest/node:" + kind.DefaultVersion() + "@sha256:",
		filepath.Join(p.Dir, "op-readiness"), "2 Windows (ltsc2022)",
	} {
		if !strings.Contains(objects, part) {
			t.Errorf("%q is not in\n%s", part, objects)
		}
	}
	if _, err := os.Stat(p.Dir); err == nil {
		t.Error("a plan made the folder of clusters")
	}
	again, err := p.Plan(t.Context(), plan.Request)
	if err != nil || again.Set[kind.Image] != plan.Set[kind.Image] {
		t.Errorf("planned again it is %+v, %v", again, err)
	}
}

// The list of images is of the kind that this program is built with.
func TestTheImagesAreThoseOfThisKind(t *testing.T) {
	version, _, _ := strings.Cut(strings.TrimPrefix(defaults.Image, "kindest/node:"), "@")
	if !slices.Contains(kind.Versions(), version) {
		t.Fatalf("kind's own default is %s, which is not among %v: take over the list of its release notes", defaults.Image, kind.Versions())
	}
	page, err := os.ReadFile("../../../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range append(kind.Versions(), kind.DefaultVersion()+" unless you say so") {
		if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), version) {
			t.Errorf("docs/providers.md does not name %s", version)
		}
	}
	r := aRequest()
	r.KubernetesVersion = version
	plan, err := providerWith(t, map[string]string{"docker": answers}).Plan(t.Context(), r)
	if err != nil || plan.Set[kind.Image] != defaults.Image {
		t.Errorf("the image of %s is %+v, %v, want %s", version, plan, err, defaults.Image)
	}
}
