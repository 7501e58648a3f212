package jobs_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	prowconfig "sigs.k8s.io/prow/pkg/config"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
)

// TestTestInfras_own_tests_pass runs the tests that kubernetes/test-infra has
// for its jobs on ours, with its own configuration of Prow.
func TestTestInfras_own_tests_pass(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the tests of test-infra")
	}
	binary := filepath.Join(t.TempDir(), "jobs.test")
	command(t, "go", "test", "-modfile=../scripts/prow/go.mod", "-c", "-o", binary, "k8s.io/test-infra/config/tests/jobs")
	for name, c := range configurations(t) {
		if c.Prow.Profile != config.ProfileCAPZ {
			continue
		}
		t.Run(name, func(t *testing.T) {
			p := prowOf(t, c)
			args := []string{"-config=" + p.configPath, "-job-config=" + p.jobsDir}
			if c.Prow.Postsubmit == nil {
				args = append(args, "-test.skip=^TestPostsubmits$") // it wants some
			}
			out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
			if err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

// TestPolicies states what kubernetes/test-infra wants of jobs, in August 2026
// (config/tests/jobs), beyond the tests of the version that go.mod names.
func TestPolicies(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	community := []string{"k8s-infra-kops-prow-build", "k8s-infra-prow-build", "k8s-infra-prow-build-trusted", "eks-prow-build-cluster", "k8s-infra-ppc64le-prow-build", "k8s-infra-s390x-prow-build"}
	for configuration, c := range configurations(t) {
		t.Run(configuration, func(t *testing.T) {
			cfg := prowOf(t, c).load(t)
			capz := c.Prow.Profile == config.ProfileCAPZ
			for _, j := range allJobs(cfg) {
				bad := func(format string, args ...any) { t.Helper(); t.Errorf(j.Name+": "+format, args...) }
				limit := 63
				if strings.HasPrefix(j.Name, "ci-") {
					limit = 58 // a fork appends -X-YY
				}
				if !name.MatchString(j.Name) || len(j.Name) > limit {
					bad("its name has %d characters, or others than small letters, digits and dashes", len(j.Name))
				}
				if capz && !slices.Contains(community, j.Cluster) {
					bad("it runs in %s, which is none of the community's clusters", j.Cluster)
				}
				for _, container := range j.Spec.Containers {
					r := container.Resources
					for _, of := range []struct {
						request, limit *resource.Quantity
						most           string
					}{{r.Requests.Cpu(), r.Limits.Cpu(), "7"}, {r.Requests.Memory(), r.Limits.Memory(), "27Gi"}} {
						if of.request.IsZero() || of.request.Cmp(*of.limit) != 0 || of.request.Cmp(resource.MustParse(of.most)) > 0 {
							bad("it requests %s, with limit %s", of.request, of.limit)
						}
					}
					if strings.Contains(container.Image, ":latest") && container.ImagePullPolicy != "Always" {
						bad("its image's tag moves, and it is pulled %q", container.ImagePullPolicy)
					}
					mounted := map[string]bool{}
					for _, m := range container.VolumeMounts {
						mounted[m.Name] = true
					}
					for _, v := range j.Spec.Volumes {
						if !mounted[v.Name] {
							bad("volume %s is mounted nowhere", v.Name)
						}
						if v.HostPath != nil && strings.Contains(v.HostPath.Path, "docker.sock") {
							bad("it mounts docker's socket")
						}
					}
				}
			}
			for _, j := range cfg.AllStaticPresubmits(nil) {
				if j.RerunCommand != "/test "+j.Name || j.Context != j.Name {
					t.Errorf("%s: reruns by %q, and reports as %q", j.Name, j.RerunCommand, j.Context)
				}
				if j.AlwaysRun {
					t.Errorf("%s: runs always", j.Name)
				}
			}
			for _, j := range cfg.AllPeriodics() {
				if capz && len(j.ExtraRefs) == 0 {
					t.Errorf("%s: has no extra_refs", j.Name)
				}
			}
		})
	}
}

func allJobs(cfg *prowconfig.Config) []prowconfig.JobBase {
	var all []prowconfig.JobBase
	for _, j := range cfg.AllStaticPresubmits(nil) {
		all = append(all, j.JobBase)
	}
	for _, j := range cfg.AllStaticPostsubmits(nil) {
		all = append(all, j.JobBase)
	}
	for _, j := range cfg.AllPeriodics() {
		all = append(all, j.JobBase)
	}
	return all
}
