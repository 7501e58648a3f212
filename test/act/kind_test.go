//go:build unix

package act_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/test/act/runner"
	"github.com/windows-op-readiness/windows-op-readiness/test/kindtest"
)

const onKind = `
on: push
jobs:
  readiness:
    uses: windows-op-readiness/windows-op-readiness/.github/workflows/readiness.yml@v1
    with:
      name: kind
      shards: 1
      cluster: kind
      kubernetes-version: %s
      allow-inconclusive: true
      args: |
        --cluster-set=engine=%s
        --cluster-set=image=%s
        --case=extra-network-endpointslice-objects
`

// A workflow makes a cluster with real nodes and tests it; one that is killed while
// containers are there leaves nothing.
func TestKindInAWorkflow(t *testing.T) {
	bed := kindtest.All(t)
	needKubernetes(t)
	r := workflows(t)
	left := func(args ...string) string {
		said, err := bed.Engine.Run(t.Context(), args...)
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(said)
	}
	containers := []string{"ps", "--all", "--quiet", "--filter", "label=io.x-k8s.kind.cluster"}
	volumes := []string{"volume", "ls", "--quiet", "--filter", "label=op-readiness-run"}
	w := runner.Workflow{
		Repository: caller(t, fmt.Sprintf(onKind, bed.KubernetesVersion, bed.Engine.Name, bed.Image)),
		Run:        runID + 1, Artifacts: t.TempDir(), Env: map[string]string{},
	}
	for _, entry := range bed.Engine.Env {
		name, value, _ := strings.Cut(entry, "=")
		w.Env[name] = value
	}

	killed := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		killed <- kill(ctx, w.Run, "kind", func([]string) bool { return left(containers...) != "" })
	}()
	log := run(t, r, w)
	cancel()
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	jobs(t, log, map[string]string{"plan": "success", "shard 1 of 1": "failure"})
	if c, v := left(containers...), left(volumes...); c+v != "" {
		t.Errorf("the killed run leaves containers %q, volumes %q", c, v)
	}

	w.Attempt = 2
	log = run(t, r, w)
	jobs(t, log, map[string]string{"shard 1 of 1": "success", "verdict": "success"})
	says(t, log, "makes Kubernetes "+bed.KubernetesVersion)
	if c, v := left(containers...), left(volumes...); c+v != "" {
		t.Errorf("the run leaves containers %q, volumes %q", c, v)
	}
}
