package scripted_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
	"github.com/windows-op-readiness/windows-op-readiness/test/scripted"
)

// windowsPod is a pod for Windows with one container.
func windowsPod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{
			OS: &v1.PodOS{Name: v1.Windows}, NodeSelector: map[string]string{v1.LabelOSStable: "windows"},
			RestartPolicy: v1.RestartPolicyNever,
			Containers:    []v1.Container{{Name: "script", Image: "example.com/image"}},
		},
	}
}

// create makes a pod in the namespace default and waits until it is in that phase.
func create(t *testing.T, client kubernetes.Interface, pod *v1.Pod, phase v1.PodPhase) *v1.Pod {
	t.Helper()
	pods := client.CoreV1().Pods("default")
	now, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		now, err = pods.Get(ctx, pod.Name, metav1.GetOptions{})
		return err == nil && now.Status.Phase == phase, err
	})
	if err != nil {
		t.Fatalf("pod %s is %s, and is to be %s: %v", pod.Name, now.Status.Phase, phase, err)
	}
	return now
}

func logOf(t *testing.T, client kubernetes.Interface, pod string) (string, error) {
	t.Helper()
	log, err := client.CoreV1().Pods("default").GetLogs(pod, &v1.PodLogOptions{}).DoRaw(t.Context())
	return string(log), err
}

func TestPodsDoWhatTheScriptSays(t *testing.T) {
	script := func(pod *v1.Pod) (scripted.Answer, bool) {
		answers := map[string]scripted.Answer{
			"passes": {Source: scripted.Invented, Log: "one\ntwo\r\nunended"},
			"fails":  {Source: scripted.Invented, Log: "sorry\n", Exit: 7},
			"serves": {Source: scripted.Invented, Runs: true, Commands: `echo "$*"; [ "$2" != bad ]`},
		}
		a, ok := answers[pod.Name]
		return a, ok
	}
	cluster, player := scripted.Up(t, script, []string{"powershell.exe"}, func(o *provider.Request) { o.LinuxNodes, o.WindowsNodes = 0, 1 })
	client := kwoktest.Client(t, cluster)

	pod := create(t, client, windowsPod("passes"), v1.PodSucceeded)
	if log, err := logOf(t, client, "passes"); err != nil || log != "one\ntwo\r\nunended" {
		t.Errorf("the log is %q, %v", log, err)
	}
	if end := pod.Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 0 || pod.Status.PodIP == "" {
		t.Errorf("status %+v", pod.Status)
	}
	pod = create(t, client, windowsPod("fails"), v1.PodFailed)
	if end := pod.Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 7 {
		t.Errorf("status %+v", pod.Status)
	}
	create(t, client, windowsPod("other"), v1.PodRunning)
	if log, err := logOf(t, client, "other"); err == nil {
		t.Errorf("a pod without an answer says %q", log)
	}

	create(t, client, windowsPod("serves"), v1.PodRunning)
	kubectl := kubectl(t)
	for arg, passes := range map[string]bool{"good": true, "bad": false} {
		cmd := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", cluster.Kubeconfig, "exec", "serves", "--", "powershell.exe", arg)
		var said, failure bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &failure
		if err := cmd.Run(); (err == nil) != passes || strings.TrimSpace(said.String()) != "powershell.exe "+arg {
			t.Errorf("%s: it says %q, %v, %s", arg, said.String(), err, failure.String())
		}
	}

	// Another pod of the same name, with another answer.
	undo := player.Change(func(_ *v1.Pod, a scripted.Answer) scripted.Answer {
		a.Log = "changed\n"
		return a
	})
	if err := client.CoreV1().Pods("default").Delete(t.Context(), "passes", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	create(t, client, windowsPod("passes"), v1.PodSucceeded)
	undo()
	if log, err := logOf(t, client, "passes"); err != nil || log != "changed\n" {
		t.Errorf("the changed log is %q, %v", log, err)
	}
}

// kubectl returns the path of kubectl.
func kubectl(t *testing.T) string {
	t.Helper()
	dir, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	store := &binaries.Store{Dir: dir}
	paths, err := store.Get(t.Context(), binaries.Pinned, binaries.Kubectl)
	if err != nil {
		t.Fatal(err)
	}
	return paths[binaries.Kubectl]
}
