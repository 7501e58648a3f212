package jobs

import (
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// tool is this program's name, in images and in messages.
const tool = "op-readiness"

// Args are the arguments with which a job calls this program. Under Prow it
// finds the rest by itself: where results go, which build it is, and how much
// time there is.
func Args(c *config.Config, j config.Job) []string {
	args := []string{"run"}
	add := func(flag string, values ...string) {
		for _, v := range values {
			args = append(args, "--"+flag+"="+v)
		}
	}
	switch {
	case j.Category != "":
		add("category", string(j.Category))
	case len(c.Run.Categories) > 0:
		for _, category := range c.Categories() {
			add("category", string(category))
		}
	}
	switch j.Cell.Provider {
	case config.ProviderKwok:
		add("cluster", config.ProviderKwok)
		add("kubernetes-version", j.Cell.Simulated())
	case config.ProviderCAPZ:
		// run-capz-e2e.sh exports $KUBECONFIG. The cluster is the job's own, so
		// cordoning its nodes is in nobody's way.
		if !hasPolicy(j.Cell) && j.Cell.RuntimeClass() == "" {
			add("steer", "cordon")
		}
		add("before-timeout", teardown)
	default:
		add("kubeconfig", path.Join(kubeconfigFolder, kubeconfigKey))
		// The cluster is there for all jobs of its cell, and takes one run at a
		// time.
		args = append(args, "--wait")
	}
	return append(args, c.RunFlags(j.Cell)...)
}

// hasPolicy says whether the cell's API server has the admission policy by which
// pods are steered: by default, those of Kubernetes 1.36 and newer.
func hasPolicy(cell config.Cell) bool {
	v, err := specs.ParseVersion(cell.Version())
	return err != nil || v.Compare(specs.Version{Major: 1, Minor: 36, Patch: -1}) >= 0
}

// inImage runs the program that the image has; with profile capz, one that is
// built from its sources, for kubekins has none. Without kubekins' runner.sh:
// that ends at once when Prow stops the job, and results would not be written.
func inImage(c *config.Config, container *corev1.Container, args []string) {
	container.Command, container.Args = []string{tool}, args
	if c.Prow.Profile == config.ProfileCAPZ {
		container.Command = []string{"bash", "-c", scriptOf(buildTool, `exec "${bin}/op-readiness" "$@"`), tool}
	}
}
