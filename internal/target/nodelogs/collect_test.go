package nodelogs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/nodelogs"
)

// collect returns the files that were written, and what is missing, as missing.txt
// has it.
func collect(t *testing.T, o nodelogs.Options) (files map[string]string, missing string) {
	t.Helper()
	o.Dir = filepath.Join(t.TempDir(), "outer", "logs")
	told, err := nodelogs.Collect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	files = read(t, o.Dir)
	if outside := read(t, filepath.Dir(o.Dir)); len(outside) != len(files) {
		t.Errorf("files outside of the folder: %v", outside)
	}
	missing = files["missing.txt"]
	for _, m := range told {
		if !strings.Contains(missing, m.What+": "+m.Reason+"\n") {
			t.Errorf("missing.txt does not have %+v", m)
		}
	}
	return files, missing
}

func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		files[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

func TestKubeletsThatAnswerQueriesNeedNoPod(t *testing.T) {
	a := &api{
		nodes: []corev1.Node{node("one", "linux"), node("two", "linux")},
		kubelets: map[string]http.HandlerFunc{
			"one": says(map[string]string{"kubelet": "it works\nAuthorization: Bearer abcdefghijklmnop\n", "containerd": "so does this\n"}),
			"two": func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has("tailLines") {
					fmt.Fprint(w, "\noptions present and query resolved to log files for [kubelet]\ntry without specifying options\n")
					return
				}
				says(map[string]string{"kubelet": "of a file\n", "containerd": "of another\n"})(w, r)
			},
		},
	}
	files, _ := collect(t, nodelogs.Options{Target: a.serve(t)})
	for path, want := range map[string]string{
		"nodes/one/kubelet.log": "it works\nAuthorization: Bearer [REDACTED]\n", "nodes/one/containerd.log": "so does this\n",
		"nodes/two/kubelet.log": "of a file\n", "nodes/two/containerd.log": "of another\n",
	} {
		if files[path] != want {
			t.Errorf("%s is %q, want %q", path, files[path], want)
		}
	}
	if len(a.made) > 0 || len(a.removed) > 0 {
		t.Errorf("pods were made: %v", a.made)
	}
}

func TestWhatTheKubeletDoesNotHaveAPodPrints(t *testing.T) {
	listing := func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<!doctype html>\n<meta name=\"viewport\">\n<pre>\n<a href=\"pods/\">pods/</a>\n</pre>\n")
	}
	win := node("win", "windows")
	win.Status.Images = []corev1.ContainerImage{{Names: []string{"example.com/mirror/agnhost@sha256:0", "example.com/mirror/agnhost:2.50"}}}
	a := &api{
		nodes:    []corev1.Node{node("off", "linux"), node("half", "linux"), win},
		kubelets: map[string]http.HandlerFunc{"off": listing, "half": says(map[string]string{"kubelet": "asked\n"})},
		said: map[string]string{
			"off/kubelet": "printed\n", "off/containerd": "there is no journal\n", "half/containerd": "printed too\n",
			"win/kubelet": "k\n", "win/containerd": "c\n", "win/events": "e\n", "win/hns": "h\n", "win/dumps": "0 crash dumps\n",
		},
		exit: map[string]int32{"off/containerd": 3, "win/hns": 1},
	}
	files, missing := collect(t, nodelogs.Options{Target: a.serve(t)})
	for path, want := range map[string]string{
		"nodes/off/kubelet.log": "printed\n", "nodes/off/containerd.log": "", "nodes/half/kubelet.log": "asked\n", "nodes/half/containerd.log": "printed too\n",
		"nodes/win/kubelet.log": "k\n", "nodes/win/events.log": "e\n", "nodes/win/hns.log": "h\n", "nodes/win/dumps.log": "0 crash dumps\n",
	} {
		if files[path] != want {
			t.Errorf("%s is %q, want %q", path, files[path], want)
		}
	}
	has(t, missing,
		"nodes/off/containerd.log: the kubelet answers no log queries; there is no journal\n",
		"nodes/win/hns.log: its end: its container ended with exit code 1\n")
	if !slices.Equal(a.removed, []string{"op-readiness-logs-x"}) {
		t.Errorf("removed %v", a.removed)
	}

	if pod := a.made["off"]; pod.Spec.NodeName != "off" || !*pod.Spec.Containers[0].SecurityContext.Privileged || !pod.Spec.Containers[0].VolumeMounts[0].ReadOnly ||
		pod.Spec.Containers[0].Image != nodelogs.DefaultImage || pod.Spec.Containers[0].ImagePullPolicy != corev1.PullIfNotPresent {
		t.Errorf("the pod on Linux is %+v", pod.Spec)
	}
	if pod := a.made["win"]; !*pod.Spec.SecurityContext.WindowsOptions.HostProcess || !pod.Spec.HostNetwork || len(pod.Spec.Containers) != 5 ||
		pod.Spec.Containers[0].Image != "example.com/mirror/agnhost:2.50" || len(pod.Spec.Volumes) > 0 {
		t.Errorf("the pod on Windows is %+v", pod.Spec)
	}
	for _, pod := range a.made {
		if tolerations := pod.Spec.Tolerations; len(tolerations) != 1 || tolerations[0] != (corev1.Toleration{Operator: corev1.TolerationOpExists}) || *pod.Spec.ActiveDeadlineSeconds != 120 {
			t.Errorf("tolerations %+v, deadline %d", tolerations, *pod.Spec.ActiveDeadlineSeconds)
		}
	}
}

func TestNamesLeadNowhereElse(t *testing.T) {
	logs := says(map[string]string{"kubelet": "k\n", "containerd": "c\n"})
	everyone := map[string]http.HandlerFunc{"one": logs, `..\..\evil`: logs}
	a := &api{nodes: []corev1.Node{node("one", "linux")}, kubelets: everyone}
	for _, name := range []string{"../../evil", "..", "/etc/passwd", `..\..\evil`, "A\x1b[31m", strings.Repeat("x", 300)} {
		pod := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "../..", Name: name},
			Spec:       corev1.PodSpec{NodeName: "one"},
			Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "../" + name}}},
		}
		a.pods = append(a.pods, pod)
		a.nodes = append(a.nodes, node(name, "linux"))
	}
	files, missing := collect(t, nodelogs.Options{Target: a.serve(t), PerNode: 5 * time.Second})
	if got := files["nodes/%2E.%5C..%5Cevil/kubelet.log"]; got != "k\n" {
		t.Errorf("the log of a node with backslashes in its name is %q", got)
	}
	has(t, missing, "nodes/%2E.%2F..%2Fevil/kubelet.log: ")
	for _, line := range strings.Split(missing, "\n") {
		line, _, _ = strings.Cut(line, ": ")
		if strings.Contains(line, "/../") || strings.HasPrefix(line, "..") || strings.Contains(line, "\x1b") {
			t.Errorf("missing.txt says %q", line)
		}
	}
}

func TestLogsAreBounded(t *testing.T) {
	line := strings.Repeat("y", 99) + "\n"
	a := &api{
		nodes: []corev1.Node{node("one", "linux")},
		kubelets: map[string]http.HandlerFunc{"one": func(w http.ResponseWriter, _ *http.Request) {
			for range 250_000 {
				fmt.Fprint(w, line)
			}
			fmt.Fprint(w, "the end\n")
		}},
	}
	files, missing := collect(t, nodelogs.Options{Target: a.serve(t)})
	log := files["nodes/one/kubelet.log"]
	if len(log) > 10<<20 || len(log) < 9<<20 || !strings.HasPrefix(log, line) || !strings.HasSuffix(log, "the end\n") {
		t.Errorf("%d bytes, from %.20q", len(log), log)
	}
	has(t, missing, "nodes/one/kubelet.log: its beginning: it is longer than 10 MiB, of which the end is kept\n")
}

func TestNodesThatDoNotAnswer(t *testing.T) {
	released := make(chan struct{})
	defer close(released)
	silent := node("silent", "linux")
	silent.Status.Conditions[0].Status = corev1.ConditionUnknown
	lost := node("lost", "windows")
	a := &api{
		nodes: []corev1.Node{silent, lost, node("hangs", "linux"), node("stops", "linux"), node("well", "linux")},
		kubelets: map[string]http.HandlerFunc{
			"lost": func(w http.ResponseWriter, _ *http.Request) {
				answer(w, 503, failure(503, "error trying to reach service: dial tcp 192.0.2.1:10250: connect: no route to host"))
			},
			"hangs": func(_ http.ResponseWriter, r *http.Request) {
				select {
				case <-released:
				case <-r.Context().Done():
				}
			},
			"stops": func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, strings.Repeat("some of it\n", 1000))
				w.(http.Flusher).Flush()
				select {
				case <-released:
				case <-r.Context().Done():
				}
			},
			"well": says(map[string]string{"kubelet": "k\n", "containerd": "c\n"}),
		},
	}
	files, missing := collect(t, nodelogs.Options{Target: a.serve(t), PerNode: 2 * time.Second})
	has(t, missing,
		"nodes/silent/kubelet.log: the kubelet answers no log queries; the kubelet has not reported since 2026-01-02T03:04:05Z\n",
		"nodes/lost/kubelet.log: asking the kubelet: error trying to reach service: dial tcp 192.0.2.1:10250: connect: no route to host\n",
		"nodes/lost/hns.log: asking the kubelet: ",
		"nodes/hangs/kubelet.log: asking the kubelet: time is up, after 2s\n",
		"nodes/stops/kubelet.log: its end: time is up, after 2s\n")
	if files["nodes/well/kubelet.log"] != "k\n" || !strings.HasPrefix(files["nodes/stops/kubelet.log"], "some of it\n") {
		t.Errorf("files %q", files)
	}
	if len(a.made) > 0 {
		t.Errorf("pods were made: %v", a.made)
	}
}

func TestPodsOfTheControlPlane(t *testing.T) {
	ran := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}
	pod := func(name, on string, states ...corev1.ContainerStatus) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}, Spec: corev1.PodSpec{NodeName: on}, Status: corev1.PodStatus{ContainerStatuses: states}}
	}
	played := node("played", "linux")
	played.Annotations = map[string]string{"kwok.x-k8s.io/node": "fake"}
	a := &api{
		nodes:    []corev1.Node{node("one", "linux"), played},
		kubelets: map[string]http.HandlerFunc{"one": says(map[string]string{"kubelet": "k\n", "containerd": "c\n"})},
		pods: []corev1.Pod{
			pod("proxy", "one", corev1.ContainerStatus{Name: "kube-proxy", State: ran, RestartCount: 2}),
			pod("dns", "one", corev1.ContainerStatus{Name: "coredns", State: waits}),
			pod("far", "played", corev1.ContainerStatus{Name: "x", State: ran}),
			pod("nowhere", ""),
		},
		said: map[string]string{"proxy/kube-proxy": "now\n", "proxy/kube-proxy/previous": "before\n"},
	}
	files, missing := collect(t, nodelogs.Options{Target: a.serve(t)})
	if files["pods/kube-system/proxy/kube-proxy.log"] != "now\n" || files["pods/kube-system/proxy/kube-proxy.previous.log"] != "before\n" {
		t.Errorf("files %q", files)
	}
	if a.hasAsked("/secrets") {
		t.Error("Secrets were asked for")
	}
	has(t, missing,
		"nodes/played: simulated: nothing runs there\n",
		"pods/kube-system/dns/coredns.log: it has not run: ImagePullBackOff: no such image\n",
		"pods/kube-system/far: its node played is simulated or gone: nothing runs there\n",
		"pods/kube-system/nowhere: it has no node: it was not scheduled\n")
}

func TestWhoMayNotMakePodsGetsTheRest(t *testing.T) {
	a := &api{nodes: []corev1.Node{node("one", "linux")}, refuses: true}
	_, missing := collect(t, nodelogs.Options{Target: a.serve(t)})
	has(t, missing, "nodes/one/kubelet.log: the kubelet answers no log queries; making a namespace: you may make no namespace\n")
}

func TestAnInterruptIsSaidAndLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := &api{nodes: []corev1.Node{node("one", "linux")}, said: map[string]string{"one/kubelet": "k\n"}}
	o := nodelogs.Options{Target: a.serve(t), Dir: t.TempDir(), Note: func(text string) {
		if strings.Contains(text, "a pod on one prints") {
			cancel()
		}
	}}
	if _, err := nodelogs.Collect(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	has(t, read(t, o.Dir)["missing.txt"], "nodes/one/kubelet.log: ", "interrupted\n")
	if !slices.Equal(a.removed, []string{"op-readiness-logs-x"}) {
		t.Errorf("removed %v", a.removed)
	}
}

func TestAFolderThatHoldsLogsIsRefused(t *testing.T) {
	a := &api{}
	o := nodelogs.Options{Target: a.serve(t), Dir: t.TempDir()}
	if _, err := nodelogs.Collect(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if _, err := nodelogs.Collect(t.Context(), o); err == nil || !strings.Contains(err.Error(), "holds logs already (objects): name another folder") {
		t.Errorf("error %v", err)
	}
}
