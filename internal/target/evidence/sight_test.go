package evidence

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// blank is a watch to which events are told by hand.
func blank() *Watch {
	return &Watch{
		barrier: newBarrier(nil), pods: &stream{what: "pods"}, namespaces: &stream{what: "namespaces"},
		seen: map[string]map[types.UID]*sight{}, settled: map[types.UID]bool{}, homes: map[string][]home{}, told: make(chan struct{}),
		own: map[string]bool{}, keep: keep, swept: time.Now(),
	}
}

// tell lets the watch take a pod as the informer gives it.
func tell(t *testing.T, w *Watch, pod *corev1.Pod) *sight {
	t.Helper()
	stripped, err := strip(pod)
	if err != nil {
		t.Fatal(err)
	}
	w.take(stripped)
	return w.seen[pod.Namespace][pod.UID]
}

func TestAPodStartedWhereAContainerRan(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	broken := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "StartError", StartedAt: metav1.NewTime(time.Unix(0, 0)), FinishedAt: metav1.Now(), ExitCode: 128}}
	one := func(s corev1.ContainerState) []corev1.ContainerStatus { return []corev1.ContainerStatus{{State: s}} }
	for what, c := range map[string]struct {
		steps []corev1.PodStatus
		want  bool
	}{
		"nothing is told":                     {[]corev1.PodStatus{{Phase: corev1.PodPending}}, false},
		"the kubelet rejected it":             {[]corev1.PodStatus{{Phase: corev1.PodPending}, {Phase: corev1.PodFailed, Reason: "NodeAffinity"}}, false},
		"the phase alone says that it runs":   {[]corev1.PodStatus{{Phase: corev1.PodRunning}}, false},
		"its container could not be started":  {[]corev1.PodStatus{{Phase: corev1.PodFailed, ContainerStatuses: one(broken)}}, false},
		"its container runs":                  {[]corev1.PodStatus{{Phase: corev1.PodRunning, ContainerStatuses: one(running)}}, true},
		"its container ran, and is gone":      {[]corev1.PodStatus{{Phase: corev1.PodRunning, ContainerStatuses: one(running)}, {Phase: corev1.PodFailed}}, true},
		"an init container ran":               {[]corev1.PodStatus{{Phase: corev1.PodPending, InitContainerStatuses: one(running), ContainerStatuses: one(corev1.ContainerState{})}}, true},
		"an ephemeral container ran":          {[]corev1.PodStatus{{EphemeralContainerStatuses: one(running)}}, true},
		"it ran, and waits to be tried again": {[]corev1.PodStatus{{ContainerStatuses: []corev1.ContainerStatus{{LastTerminationState: running}}}}, true},
	} {
		w := blank()
		var got *sight
		for _, status := range c.steps {
			got = tell(t, w, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "1"}, Spec: corev1.PodSpec{NodeName: "w"}, Status: status})
		}
		if got.Started != c.want {
			t.Errorf("%s: started %t", what, got.Started)
		}
	}
}

// One after the other, namespaces of several processes may have one name. The
// watch on namespaces may tell of them before and after their pods.
func TestWhoseAPodIs(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }
	for what, c := range map[string]struct {
		homes        []home
		made         int
		ours, others bool
	}{
		"of no namespace that is known":             {nil, 5, false, false},
		"of the process":                            {[]home{{"1", at(5), "r", time.Time{}}}, 5, true, false},
		"of another process":                        {[]home{{"1", at(5), "x", time.Time{}}}, 5, false, true},
		"of a user":                                 {[]home{{"1", at(5), "", time.Time{}}}, 9, false, true},
		"by an API server whose clock is behind":    {[]home{{"1", at(5), "r", time.Time{}}}, 3, true, false},
		"of the second, after another's":            {[]home{{"1", at(5), "x", time.Time{}}, {"2", at(8), "r", time.Time{}}}, 9, true, false},
		"of another's, before the second":           {[]home{{"1", at(5), "x", time.Time{}}, {"2", at(8), "r", time.Time{}}}, 6, false, true},
		"of the first, before another's":            {[]home{{"1", at(5), "r", time.Time{}}, {"2", at(8), "x", time.Time{}}}, 6, true, false},
		"in the second in which both were":          {[]home{{"1", at(5), "x", time.Time{}}, {"2", at(8), "r", time.Time{}}}, 8, true, true},
		"in the second in which both were, of one":  {[]home{{"1", at(5), "r", time.Time{}}, {"2", at(8), "r", time.Time{}}}, 8, true, false},
		"of the one between two of other processes": {[]home{{"1", at(5), "x", time.Time{}}, {"2", at(8), "r", time.Time{}}, {"3", at(20), "x", time.Time{}}}, 9, true, false},
	} {
		w := blank()
		w.homes["n"] = c.homes
		if ours, others := w.whose("n", at(c.made), func(run string) bool { return run == "r" }); ours != c.ours || others != c.others {
			t.Errorf("%s: ours %t, others' %t", what, ours, others)
		}
	}
}

func TestANamespaceKeepsTheRunIDThatItHadFirst(t *testing.T) {
	w := blank()
	for _, label := range []string{"", "r", "", "x"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1", Labels: map[string]string{"e2e-run": label}}}
		stripped, err := stripNamespace(ns)
		if err != nil {
			t.Fatal(err)
		}
		w.house(stripped, false)
	}
	if homes := w.homes["n"]; len(homes) != 1 || homes[0].run != "r" {
		t.Errorf("namespaces %+v", homes)
	}
}

// Ten thousand pods of another suite, and as many of nobody, come and go, and stay.
func TestOthersPodsAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := blank()
		w.Own("r")
		house := func(name, run string, gone bool) {
			w.house(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{"e2e-run": run}}}, gone)
		}
		house("own", "r", false)
		own := func(n int) { tell(t, w, podIn("own", n)) }
		own(0)
		most := 0
		for n := range 20_000 {
			name, run := fmt.Sprintf("other-%d", n/10), ""
			if n%2 == 0 {
				name, run = name+"-labelled", "x"
			}
			p := podIn(name, n)
			tell(t, w, p)
			house(name, run, false)
			if n%4 < 2 {
				w.gone(p)
				house(name, run, true)
			}
			time.Sleep(keep / 100)
			most = max(most, len(w.seen), len(w.homes))
		}
		time.Sleep(keep)
		own(1)
		if pods := w.seen["own"]; len(w.seen) != 1 || len(pods) != 2 {
			t.Errorf("of %d namespaces %d own pods are kept: %+v", len(w.seen), len(pods), pods)
		}
		if most > 2500 { // those that are still there, and those of two minutes
			t.Errorf("at most %d namespaces were kept", most)
		}
		for n := range 20_000 {
			w.gone(podIn("any", n))
		}
		if len(w.settled) != 0 {
			t.Errorf("%d pods that are gone are kept", len(w.settled))
		}
	})
}

// A pod may be seen before its namespace, and a process may tell its run id when
// its first pods are there already.
func TestOwnPodsThatAreNotKnownYetStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := blank()
		tell(t, w, podIn("unknown", 1))
		time.Sleep(keep / 2)
		w.house(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "late", UID: "late", Labels: map[string]string{"e2e-run": "r"}}}, false)
		tell(t, w, podIn("late", 2))
		time.Sleep(keep / 2)
		tell(t, w, podIn("late", 3))
		w.Own("r")
		time.Sleep(10 * keep)
		tell(t, w, podIn("late", 4))
		if len(w.seen["unknown"]) != 1 || len(w.seen["late"]) != 3 {
			t.Errorf("pods %+v", w.seen)
		}
	})
}

func podIn(namespace string, n int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", UID: types.UID(fmt.Sprint(n))}}
}
