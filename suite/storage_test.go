package suite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"
	imageutils "k8s.io/kubernetes/test/utils/image"
	admissionapi "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

var _ = describe(func() {
	f := framework.NewDefaultFramework("share")
	f.NamespacePodSecurityLevel = admissionapi.LevelPrivileged // for hostPath

	writers := []string{"a", "b", "c"}

	framework.It("Shared files should be read and written by three containers of a pod at once", func(ctx context.Context) {
		windows := target(ctx, f.ClientSet)
		pod := named(windows.pause(), "share-containers")
		pod.Spec.RestartPolicy = v1.RestartPolicyNever
		pod.Spec.Volumes = []v1.Volume{{Name: "share", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
		pod.Spec.Containers = nil
		for i := range writers {
			pod.Spec.Containers = append(pod.Spec.Containers, windows.sharer(i, writers))
		}
		pod = create(ctx, f, pod)
		waitSucceeded(ctx, f, pod)
		var logs []string
		for _, name := range writers {
			logs = append(logs, logOf(ctx, f, pod.Name, name))
		}
		gomega.Expect(judge.Shared(writers, shareLines, logs)).To(gomega.BeEmpty(), "files that three containers shared")
	})

	framework.It("Shared files should be read and written by three pods of a node at once", func(ctx context.Context) {
		windows := target(ctx, f.ClientSet)
		node := windows.nodes[0]
		sharing := func(name, folder string, container v1.Container) *v1.Pod {
			pod := on(named(windows.pause(), name), &node)
			pod.Spec.RestartPolicy = v1.RestartPolicyNever
			pod.Spec.Volumes = []v1.Volume{{Name: "share", VolumeSource: v1.VolumeSource{
				HostPath: &v1.HostPathVolumeSource{Path: folder, Type: ptr.To(v1.HostPathDirectoryOrCreate)},
			}}}
			pod.Spec.Containers = []v1.Container{container}
			return pod
		}
		clean := func(ctx context.Context, name string, folders ...string) (left []string) {
			pod := create(ctx, f, sharing(name, windows.hostFolder(), windows.sharing("cleanup", "rm -rf ./"+strings.Join(folders, " ./")+"; ls")))
			waitSucceeded(ctx, f, pod)
			return strings.Fields(logOf(ctx, f, name, "cleanup"))
		}
		ginkgo.DeferCleanup(func(ctx context.Context) {
			if left := leftBehind(ctx, f, clean(ctx, "share-cleanup", f.Namespace.Name)); len(left) > 0 {
				clean(ctx, "share-cleanup-left", left...)
			}
		})
		var pods []*v1.Pod
		for i := range writers {
			pods = append(pods, create(ctx, f, sharing("share-"+writers[i], windows.hostFolder(f.Namespace.Name), windows.sharer(i, writers))))
		}
		var logs []string
		for i, pod := range pods {
			waitSucceeded(ctx, f, pod)
			logs = append(logs, logOf(ctx, f, pod.Name, writers[i]))
		}
		gomega.Expect(judge.Shared(writers, shareLines, logs)).To(gomega.BeEmpty(), "files that three pods of node %s shared", node.Name)
		// That the folder is the node's shows whoever comes later.
		later := create(ctx, f, sharing("share-later", windows.hostFolder(f.Namespace.Name), windows.sharing("later", fmt.Sprintf(readShared, "a b c"))))
		waitSucceeded(ctx, f, later)
		gomega.Expect(judge.SharedLater(writers, shareLines, logOf(ctx, f, later.Name, "later"))).To(gomega.BeEmpty(), "files that a fourth pod of node %s found", node.Name)
	})
})

// shareLines is how many lines each writes, and patience how long it waits for the
// others.
const (
	shareLines = 50
	patience   = 90 * time.Second
)

// shareScript writes lines to a file of its own and reads those of two others
// meanwhile; it never waits for ever. %[1]s is who writes, %[2]s and %[3]s are the
// others, %[4]d is how many lines, and %[5]d for how many seconds it waits for others.
const shareScript = `
awaits() { n=0; until [ -s "$1-$2" ] && [ -s "$1-$3" ]; do n=$((n+1)); [ $n -gt %[5]d ] && return; sleep 1; done; }
lines() { if [ -e "lines-$1" ]; then grep -c ' end$' "lines-$1"; else echo 0; fi; }
echo ready > ready-%[1]s
awaits ready %[2]s %[3]s
i=1
while [ $i -lt %[4]d ]; do echo "%[1]s line $i end" >> lines-%[1]s; i=$((i+1)); done
awaits lines %[2]s %[3]s
saw="\"%[2]s\": $(lines %[2]s), \"%[3]s\": $(lines %[3]s)"
echo "%[1]s line $i end" >> lines-%[1]s
echo done > done-%[1]s
awaits done %[2]s %[3]s
echo "op-readiness: {\"saw\": {$saw}, \"lines\": {\"%[1]s\": $(lines %[1]s), \"%[2]s\": $(lines %[2]s), \"%[3]s\": $(lines %[3]s)}, \"all\": $(cat lines-* | wc -l)}"
`

// readShared counts the lines of those whose names it is given.
const readShared = `
all=""
for who in %s; do n=0; [ -e "lines-$who" ] && n=$(grep -c ' end$' "lines-$who"); all="$all${all:+, }\"$who\": $n"; done
echo "op-readiness: {\"lines\": {$all}, \"all\": $(cat lines-* | wc -l)}"
`

// sharer is the container of one of three writers.
func (s *system) sharer(i int, writers []string) v1.Container {
	return s.sharing(writers[i], fmt.Sprintf(shareScript, writers[i], writers[(i+1)%3], writers[(i+2)%3], shareLines, int(within(patience).Seconds())))
}

// sharing is a container that runs a script in the shared folder.
func (s *system) sharing(name, script string) v1.Container {
	folder := s.folder("share")
	return v1.Container{
		Name: name, Image: imageutils.GetE2EImage(imageutils.Agnhost),
		Command: []string{"sh", "-c", script}, WorkingDir: folder,
		VolumeMounts: []v1.VolumeMount{{Name: "share", MountPath: folder}},
	}
}

// waitSucceeded returns when the pod has ended well.
func waitSucceeded(ctx context.Context, f *framework.Framework, pod *v1.Pod) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) (string, error) {
		now, err := f.ClientSet.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		switch now.Status.Phase {
		case v1.PodSucceeded:
			return "", nil
		case v1.PodFailed:
			return "", gomega.StopTrying(stateOf(now) + logsOf(ctx, f, now))
		}
		return stateOf(now), nil
	}).WithTimeout(podStart+6*time.Minute).Should(gomega.BeEmpty(), "pods that do not end")
}

func logOf(ctx context.Context, f *framework.Framework, pod, container string) string {
	ginkgo.GinkgoHelper()
	log, err := e2epod.GetPodLogs(ctx, f.ClientSet, f.Namespace.Name, pod, container)
	framework.ExpectNoError(err, "reading the log of container %s of pod %s", container, pod)
	return log
}

// logsOf returns what the containers of a pod have said, for a failure.
func logsOf(ctx context.Context, f *framework.Framework, pod *v1.Pod) string {
	text := ""
	for _, c := range pod.Spec.Containers {
		log, err := e2epod.GetPodLogs(ctx, f.ClientSet, pod.Namespace, pod.Name, c.Name)
		if err != nil {
			log = err.Error()
		}
		text += fmt.Sprintf("\ncontainer %s said: %s", c.Name, log)
	}
	return text
}
