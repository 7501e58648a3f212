package suite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/exec"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/kubernetes/test/e2e/framework"
	e2ekubelet "k8s.io/kubernetes/test/e2e/framework/kubelet"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"
	imageutils "k8s.io/kubernetes/test/utils/image"
	admissionapi "k8s.io/pod-security-admission/api"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

var _ = describe(func() {
	f := framework.NewDefaultFramework("limited")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	const (
		observed    = 5 * time.Minute
		sampleEvery = 15 * time.Second
		// fewest is over how many stretches of time CPUs are measured at least, each between
		// two samples of the kubelet, which takes them when it likes.
		fewest    = 10
		takeEvery = 30 * time.Second
	)

	framework.It("CPU limits should be honored over time", framework.WithSerial(), func(ctx context.Context) {
		windows := target(ctx, f.ClientSet)
		node := &windows.nodes[0]
		wanted := map[string]judge.CPU{
			"limited-cpu-0": {Mean: 0.55, NearlyAlways: 0.65, AtLeast: 0.25},
			"limited-cpu-1": {Mean: 0.55, NearlyAlways: 0.65, AtLeast: 0.25},
		}
		var pods []*v1.Pod
		for name := range wanted {
			pod := on(named(windows.burner(), name), node)
			pod.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m")}
			pods = append(pods, create(ctx, f, pod))
		}
		// What the same loops take without a limit, where there is a CPU for each of them.
		if node.Status.Capacity.Cpu().Value() >= 4 {
			wanted["limited-control"] = judge.CPU{AtLeast: 0.8}
			pods = append(pods, create(ctx, f, on(named(windows.burner(), "limited-control"), node)))
		}
		waitRunning(ctx, f, pods...)

		// That kubelets sample as often as time is shortened is not to be expected.
		stretches := max(3, int(fewest*long(observed)/observed))
		samples := map[string][]judge.CPUSample{}
		begun := time.Now()
		gomega.Eventually(ctx, func(ctx context.Context) (string, error) {
			summary, err := e2ekubelet.GetStatsSummary(ctx, f.ClientSet, node.Name)
			if err != nil {
				return "", err
			}
			var lacking []string
			for name := range wanted {
				if s, ok := cpuOf(statsOf(summary, f.Namespace.Name, name)); ok {
					samples[name] = judge.AddSample(samples[name], s)
				}
				if n := len(samples[name]); n <= stretches {
					lacking = append(lacking, fmt.Sprintf("there are %d samples of pod %s, and more than %d are needed", n, name, stretches))
				}
			}
			if left := long(observed) - time.Since(begun); left > 0 {
				lacking = append(lacking, fmt.Sprintf("the pods are observed for another %v", left.Round(time.Second)))
			}
			return strings.Join(lacking, "; "), nil
		}).WithTimeout(long(observed)+within(observed)+time.Minute).WithPolling(long(sampleEvery)).Should(gomega.BeEmpty(), "what the kubelet of node %s reports of CPUs", node.Name)

		var problems []string
		for name, cpu := range wanted {
			for _, problem := range cpu.Problems(samples[name], stretches) {
				problems = append(problems, fmt.Sprintf("pod %s: %s", name, problem))
			}
			if rates, why := judge.Rates(samples[name]); why == "" {
				measured("cores that pod "+name+" took", fmt.Sprintf("%.2f", rates))
			}
		}
		gomega.Expect(problems).To(gomega.BeEmpty(), "CPU time of the pods of node %s, of which two are limited to half a core", node.Name)
	})

	framework.It("Memory limits should be honored over time", framework.WithSerial(), func(ctx context.Context) {
		windows := target(ctx, f.ClientSet)
		node := &windows.nodes[0]
		limit := resource.MustParse("256Mi")
		limited := on(named(windows.netexec(), "limited-memory"), node)
		limited.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceMemory: limit}
		limited = create(ctx, f, limited)
		running := waitRunning(ctx, f, limited, create(ctx, f, on(named(windows.pause(), "limited-sibling"), node)))
		sibling := &running[1]

		rounds, most := 0, uint64(0)
		gomega.Consistently(ctx, func(ctx context.Context) ([]string, error) {
			rounds++
			little, err := windows.takeMemory(ctx, f, limited, "64M")
			if err != nil {
				return nil, err
			}
			much, err := windows.takeMemory(ctx, f, limited, "512M")
			if err != nil {
				return nil, err
			}
			problems := judge.Memory(little, much, limit.String())
			figures, err := windows.memoryOf(ctx, f, node, limited.Name)
			if err != nil {
				return nil, err
			}
			most = max(most, figures["workingSetBytes"])
			problems = append(problems, judge.MemoryFigures(figures, limit)...)
			unharmed, err := besides(ctx, f.ClientSet, sibling)
			return append(problems, unharmed...), err
		}).WithTimeout(long(observed)).WithPolling(long(takeEvery)).Should(gomega.BeEmpty(),
			"what came of taking memory in pod %s of node %s, again and again", limited.Name, node.Name)
		measured("times that memory was taken", rounds)
		measured("largest working set of the limited pod, in bytes", most)
	})
})

// burner returns a pod of the system that keeps two CPUs busy, with no name yet.
func (s *system) burner() *v1.Pod {
	pod := s.pause()
	pod.Spec.Containers = []v1.Container{{
		Name: "burner", Image: imageutils.GetE2EImage(imageutils.Agnhost),
		Command: []string{"sh", "-c", "while :; do :; done & while :; do :; done"},
	}}
	return pod
}

// takeMemory has a container of agnhost take so much memory at once, as dd counts it:
// dd asks for its whole block, where Windows refuses, and fills it, where Linux kills.
// On Linux the whole container may be killed for it.
func (s *system) takeMemory(ctx context.Context, f *framework.Framework, pod *v1.Pod, amount string) (judge.Taken, error) {
	ginkgo.GinkgoHelper()
	before := waitServing(ctx, f, pod)
	taken := judge.Taken{Amount: amount}
	_, said, err := e2epod.ExecWithOptionsContext(ctx, f, e2epod.ExecOptions{
		Command:   []string{"sh", "-c", "yes | dd bs=" + amount + " count=1 iflag=fullblock of=/dev/null"},
		Namespace: before.Namespace, PodName: before.Name, ContainerName: before.Spec.Containers[0].Name,
		CaptureStdout: true, CaptureStderr: true, Quiet: true,
	})
	taken.Said = said
	var exit exec.CodeExitError
	if err == nil || errors.As(err, &exit) {
		taken.Exit = exit.Code
		return taken, nil
	}
	if s.os == v1.Linux && waitServing(ctx, f, pod).Status.ContainerStatuses[0].RestartCount > before.Status.ContainerStatuses[0].RestartCount {
		taken.Killed = true
		return taken, nil
	}
	return taken, fmt.Errorf("running dd in pod %s: %w: %s", pod.Name, err, said)
}

// memoryOf returns what the kubelet reports of the memory of a pod's container, in
// bytes. What it calls usage is on Windows the memory that is committed, which is what
// the limit binds, and reported from 1.36 on; on Linux it counts caches, too.
func (s *system) memoryOf(ctx context.Context, f *framework.Framework, node *v1.Node, pod string) (map[string]uint64, error) {
	summary, err := e2ekubelet.GetStatsSummary(ctx, f.ClientSet, node.Name)
	if err != nil {
		return nil, err
	}
	figures := map[string]uint64{}
	stats := statsOf(summary, f.Namespace.Name, pod)
	if stats == nil || stats.Memory == nil {
		return figures, nil // not yet sampled since the container started
	}
	if m := stats.Memory.WorkingSetBytes; m != nil {
		figures["workingSetBytes"] = *m
	}
	kubelet, err := version.ParseGeneric(node.Status.NodeInfo.KubeletVersion)
	if err != nil {
		return nil, fmt.Errorf("the version of the kubelet of node %s: %w", node.Name, err)
	}
	if m := stats.Memory.UsageBytes; m != nil && s.os == v1.Windows && kubelet.AtLeast(version.MajorMinor(1, 36)) {
		figures["usageBytes"] = *m
	}
	return figures, nil
}

// besides returns what has become of a pod, and of its node, that were to be left alone.
func besides(ctx context.Context, client clientset.Interface, pod *v1.Pod) ([]string, error) {
	now, err := client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	node, err := client.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return judge.Unharmed(pod, now, node), nil
}

// statsOf returns what a kubelet reports of the only container of a pod, or nil.
func statsOf(summary *statsapi.Summary, namespace, pod string) *statsapi.ContainerStats {
	for i := range summary.Pods {
		if p := &summary.Pods[i]; p.PodRef.Namespace == namespace && p.PodRef.Name == pod && len(p.Containers) == 1 {
			return &p.Containers[0]
		}
	}
	return nil
}

// cpuOf returns the sample of a container's CPU time, if there is one.
func cpuOf(stats *statsapi.ContainerStats) (judge.CPUSample, bool) {
	if stats == nil || stats.CPU == nil || stats.CPU.UsageCoreNanoSeconds == nil {
		return judge.CPUSample{}, false
	}
	return judge.CPUSample{Time: stats.CPU.Time.Time, Used: time.Duration(*stats.CPU.UsageCoreNanoSeconds)}, true
}
