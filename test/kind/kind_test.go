// Package kind_test makes kind clusters and runs upstream's tests on them: the proof
// that the bed of test/kindtest is a cluster like any other.
package kind_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/windows-op-readiness/windows-op-readiness/test/kindtest"
)

// onOneNode are tests that need no second node: a volume, commands in a container,
// and a pod's DNS.
var onOneNode = []string{
	"[sig-storage] ConfigMap should be consumable from pods in volume [NodeConformance] [Conformance]",
	"[sig-node] Pods should support remote command execution over websockets [NodeConformance] [Conformance]",
	"[sig-network] DNS should support configurable pod DNS nameservers [Conformance]",
}

// onThreeNodes are conformance tests; the first eight run commands in containers, or
// send from one node to another.
var onThreeNodes = []string{
	"[sig-network] Networking Granular Checks: Pods should function for intra-pod communication: http [NodeConformance] [Conformance]",
	"[sig-network] Networking Granular Checks: Pods should function for intra-pod communication: udp [NodeConformance] [Conformance]",
	"[sig-network] Networking Granular Checks: Pods should function for node-pod communication: http [LinuxOnly] [NodeConformance] [Conformance]",
	"[sig-network] DNS should support configurable pod DNS nameservers [Conformance]",
	"[sig-storage] EmptyDir volumes pod should support shared volumes between containers [Conformance]",
	"[sig-api-machinery] AdmissionWebhook [Privileged:ClusterAdmin] should be able to deny pod and configmap creation [Conformance]",
	"[sig-node] Pods should support remote command execution over websockets [NodeConformance] [Conformance]",
	"[sig-node] Container Lifecycle Hook when create a pod with lifecycle hook should execute poststart http hook properly [NodeConformance] [Conformance]",
	"[sig-auth] ServiceAccounts should mount an API token into pods [Conformance]",
	"[sig-network] EndpointSlice should create Endpoints and EndpointSlices for Pods matching a Service [Conformance]",
	"[sig-storage] ConfigMap should be consumable from pods in volume [NodeConformance] [Conformance]",
}

func TestOneNode(t *testing.T) {
	bed := kindtest.New(t)
	check(t, bed, up(t, bed, 0), onOneNode)
}

func TestThreeNodes(t *testing.T) {
	bed := kindtest.All(t)
	check(t, bed, up(t, bed, 2), onThreeNodes)
}

// up makes a cluster that is deleted when the test ends, and returns its kubeconfig.
func up(t *testing.T, bed *kindtest.Bed, workers int) string {
	t.Helper()
	provider := bed.Provider(kindtest.Logger(t))
	name, kubeconfig := strings.ToLower(t.Name()), filepath.Join(t.TempDir(), "kubeconfig")
	remove := func() {
		if err := provider.Delete(name, kubeconfig); err != nil {
			t.Error(err)
		}
	}
	remove() // what a killed process has left
	t.Cleanup(remove)
	begin := time.Now()
	if err := provider.Create(name,
		cluster.CreateWithV1Alpha4Config(bed.Config(workers)), cluster.CreateWithKubeconfigPath(kubeconfig),
		cluster.CreateWithWaitForReady(3*time.Minute), cluster.CreateWithRetain(true),
		cluster.CreateWithDisplayUsage(false), cluster.CreateWithDisplaySalutation(false)); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d nodes, made in %s", 1+workers, time.Since(begin).Round(time.Second))
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		dir := filepath.Join(os.TempDir(), "op-readiness-kind-"+name)
		if err := provider.CollectLogs(name, dir); err != nil {
			t.Log(err)
		}
		t.Logf("the cluster's logs are in %s", dir)
	})
	return kubeconfig
}
