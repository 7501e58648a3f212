// Package node_test runs real upstream tests in real containers through the
// whole of op-readiness: a real kubelet with containerd has joined the
// simulated control plane. Where the machine cannot have such a node, the
// tests are skipped and say what is missing.
package node_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/cli"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/nodetest"
	"github.com/windows-op-readiness/windows-op-readiness/test/realnode"
)

func opReadiness(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Main(t.Context(), args, cli.Surroundings{Environ: os.Environ(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	return code, out.String(), errs.String()
}

// kubectl returns the program with which tests run commands in containers.
func kubectl(t *testing.T) string {
	t.Helper()
	options := nodetest.Options(t)
	paths, err := options.Binaries.Get(t.Context(), options.Cluster.KubernetesVersion, binaries.Kubectl)
	if err != nil {
		t.Fatal(err)
	}
	return paths[binaries.Kubectl]
}

// Most of these tests say nothing about where their pods belong, and two of the
// three nodes are simulated Windows: only steering takes them to the real one.
func TestRealContainersThroughThePipeline(t *testing.T) {
	node := nodetest.Up(t)
	client := connect(t, node)
	ran := watchContainers(t, client)
	dir := filepath.Join(t.TempDir(), "results")
	code, stdout, stderr := opReadiness(t, "run", "--kubeconfig", node.Cluster.Kubeconfig, "--kubectl", kubectl(t),
		"--spec-dir", "testdata/specs", "--additional", "--procs", "2", "--report-dir", dir)
	// Additional cases prove no requirement.
	if code != verdict.ExitInconclusive {
		t.Fatalf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	run, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Problems) > 0 || len(run.Suites) > 0 {
		t.Errorf("problems %q, suite failures %+v", run.Problems, run.Suites)
	}
	for _, c := range verdict.Judge(run).Cases {
		if c.Outcome != verdict.Passed {
			t.Errorf("%s is %s: %s", c.Case.ID, c.Outcome, c.Reason)
		}
	}
	if !strings.Contains(stdout, "1 pod, on Linux") || strings.Contains(stdout, "pod, on Windows") {
		t.Errorf("the report does not say where pods ran:\n%s", stdout)
	}
	checkPods(t, run, node, ran())
	checkNode(t, run)
}

// checkPods holds the evidence against what the kubelet said of the containers.
func checkPods(t *testing.T, run *result.Run, node *realnode.Bed, ran map[string]corev1.ContainerStatus) {
	t.Helper()
	seen := map[string]bool{}
	for i := range run.Pods {
		pod := &run.Pods[i]
		seen[pod.Test] = true
		if pod.Node != realnode.NodeName || pod.OS != specs.Linux || pod.Simulated {
			t.Errorf("pod %s is recorded on node %q, %s, simulated %t", pod.Name, pod.Node, pod.OS, pod.Simulated)
		}
		for _, image := range pod.Images {
			if image != node.Images.Agnhost && image != node.Images.Busybox {
				t.Errorf("pod %s is recorded with image %s, which the node has not", pod.Name, image)
			}
		}
		status, ok := ran[pod.Namespace+"/"+pod.Name]
		if !ok {
			t.Errorf("no container of pod %s/%s was seen to run", pod.Namespace, pod.Name)
			continue
		}
		if !strings.HasPrefix(status.ContainerID, "containerd://") || !strings.Contains(status.ImageID, "sha256:") {
			t.Errorf("a container of pod %s has id %q and image id %q", pod.Name, status.ContainerID, status.ImageID)
		}
	}
	if len(run.Plan.Tests) != 7 {
		t.Errorf("%d tests are planned, want 7", len(run.Plan.Tests))
	}
	for i := range run.Plan.Tests {
		if test := &run.Plan.Tests[i]; !seen[test.ID] {
			t.Errorf("no pod of %s is recorded", test.Name)
		}
	}
}

func checkNode(t *testing.T, run *result.Run) {
	t.Helper()
	for _, n := range run.Manifest.Cluster.Nodes {
		if n.Name != realnode.NodeName {
			if !n.Simulated {
				t.Errorf("node %s is not recorded as simulated", n.Name)
			}
			continue
		}
		if n.Simulated || n.OS != specs.Linux || !strings.HasPrefix(n.ContainerRuntime, "containerd://") || n.KubeletVersion != binaries.Pinned {
			t.Errorf("the real node is recorded as %+v", n)
		}
		return
	}
	t.Errorf("the real node is not recorded: %+v", run.Manifest.Cluster.Nodes)
}

// watchContainers watches the pods of the cluster beside the run, and returns
// what tells of each the status of a container that was started.
func watchContainers(t *testing.T, client kubernetes.Interface) func() map[string]corev1.ContainerStatus {
	t.Helper()
	watch, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Stop)
	done := make(chan map[string]corev1.ContainerStatus, 1)
	go func() {
		ran := map[string]corev1.ContainerStatus{}
		for event := range watch.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			for _, status := range pod.Status.ContainerStatuses {
				if status.ContainerID != "" && (status.State.Running != nil || status.State.Terminated != nil) {
					ran[pod.Namespace+"/"+pod.Name] = status
				}
			}
		}
		done <- ran
	}()
	return func() map[string]corev1.ContainerStatus {
		watch.Stop()
		return <-done
	}
}

func connect(t *testing.T, node *realnode.Bed) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", node.Cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
