package jobs

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	prowapi "sigs.k8s.io/prow/pkg/apis/prowjobs/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
)

// The conventions of sig-windows' jobs in kubernetes/test-infra, August 2026
// (config/jobs/kubernetes-sigs/sig-windows), and of what they run:
// https://github.com/kubernetes-sigs/windows-testing/blob/master/capz/run-capz-e2e.sh
// makes a cluster on Azure, and then runs the command that it is given, with
// $KUBECONFIG and $CI_VERSION, the build of Kubernetes.

// capzRefs are what run-capz-e2e.sh is made of. It is started in windows-testing.
var capzRefs = []prowapi.Refs{
	{Org: "kubernetes-sigs", Repo: "cluster-api-provider-azure", BaseRef: "main", PathAlias: "sigs.k8s.io/cluster-api-provider-azure"},
	{Org: "kubernetes-sigs", Repo: "windows-testing", BaseRef: "master", PathAlias: "sigs.k8s.io/windows-testing", WorkDir: true},
	{Org: "kubernetes-sigs", Repo: "cloud-provider-azure", BaseRef: "master", PathAlias: "sigs.k8s.io/cloud-provider-azure"},
}

// toolRef is this program's sources.
var toolRef = prowapi.Refs{Org: "windows-op-readiness", Repo: "windows-op-readiness", BaseRef: "main"}

const nightlyContainerd = "https://github.com/kubernetes-sigs/sig-windows-tools/releases/download/windows-containerd-nightly/windows-containerd.tar.gz"

// Parts of the scripts that jobs run in kubekins.
const (
	strict    = `set -o errexit -o nounset -o pipefail`
	buildTool = `bin=$(mktemp -d)
go build -C "${GOPATH}/src/github.com/windows-op-readiness/windows-op-readiness" -buildvcs=false -o "${bin}/op-readiness" ./cmd/op-readiness`
	// The build of Kubernetes that the cluster has is not a release; its e2e.test
	// lies where the cluster's binaries do.
	fetchTests = `curl --fail --silent --show-error --location --retry 3 "https://storage.googleapis.com/k8s-release-dev/ci/${CI_VERSION}/kubernetes-test-linux-amd64.tar.gz" | tar -xz -C "${bin}" --strip-components=3 kubernetes/test/bin/e2e.test`
	// For a pull request of Kubernetes, it is what ci-build-kubernetes.sh built.
	fetchBuiltTests = `curl --fail --silent --show-error --location --retry 3 --output "${bin}/e2e.test" "https://${AZURE_STORAGE_ACCOUNT}.blob.core.windows.net/kubernetes-ci/${KUBE_GIT_VERSION}/bin/linux/amd64/e2e.test"
chmod +x "${bin}/e2e.test"`
	// What run-capz-e2e.sh installs for Hyper-V before its own tests has the
	// runtime class, and a webhook that this program does without.
	hyperVClass = `kubectl apply -f "${GOPATH}/src/sigs.k8s.io/windows-testing/helpers/hyper-v-mutating-webhook/hyperv-runtimeclass.yaml"`
	runTool     = `exec "${bin}/op-readiness" "$@" --e2e-binary="${bin}/e2e.test"`
)

// teardown is what run-capz-e2e.sh is left to collect logs and remove the
// cluster, as --before-timeout has it. No signal of Prow's gets to this program:
// runner.sh and run-capz-e2e.sh end at once, and clean up. So it has to end
// before the job's time does.
const teardown = "20m"

func scriptOf(parts ...string) string { return strings.Join(append([]string{strict}, parts...), "\n") }

// onCAPZ lets run-capz-e2e.sh make the cluster, and run this program on it.
func onCAPZ(c *config.Config, j config.Job, container *corev1.Container, env map[string]string) {
	privileged := true
	container.SecurityContext = &corev1.SecurityContext{Privileged: &privileged}
	// The version stands in the command, because fork-per-release replaces it
	// there.
	container.Command = []string{"runner.sh", "env", "KUBERNETES_VERSION=" + capzVersion(j.Cell), "./capz/run-capz-e2e.sh"}
	parts := []string{buildTool, fetchTests}
	if c.BuildsKubernetes(j) {
		parts[1] = fetchBuiltTests
	}
	if j.Cell.Isolation == config.IsolationHyperV {
		parts = append(parts, hyperVClass)
		env["HYPERV"] = "true"
	}
	if j.Cell.Runtime == "containerd-nightly" {
		env["WINDOWS_CONTAINERD_URL"] = nightlyContainerd
	}
	container.Args = append([]string{"bash", "-c", scriptOf(append(parts, runTool)...), tool}, Args(c, j)...)
}

// capzVersion is the marker of the newest build of a branch: latest, or
// latest-1.36.
func capzVersion(cell config.Cell) string {
	if version := cell.Version(); version != "" {
		return "latest-" + version
	}
	return "latest"
}
