package steer_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/steer"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

var (
	toWindows = result.RunConditions{Steer: specs.Windows}
	toLinux   = result.RunConditions{Steer: specs.Linux}
	asIs      = result.RunConditions{}
)

var policies = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"}

// names lists what there is of a resource.
func names(t *testing.T, dyn dynamic.Interface, resource schema.GroupVersionResource) []string {
	t.Helper()
	list, err := dyn.Resource(resource).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, item := range list.Items {
		out = append(out, item.GetName())
	}
	slices.Sort(out)
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// living are the members of a run that its lock would name.
type living []string

func (l *living) peersOf(id string) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) {
		return slices.DeleteFunc(slices.Clone(*l), func(other string) bool { return other == id }), nil
	}
}

func TestTheFirstShardToGoTakesNothingFromTheOthers(t *testing.T) {
	client, dyn := start(t)
	var alive living
	shard := func(n int) *steer.Policy {
		m := member("nightly", n)
		m.Peers = alive.peersOf(m.ID)
		alive = append(alive, m.ID)
		s, err := steer.New(t.Context(), client, dyn, m)
		must(t, err)
		return s
	}
	one, two := shard(1), shard(2)
	own(t, client, one, toLinux, "x")
	must(t, two.Apply(t.Context(), toWindows))
	own(t, client, two, toWindows, "y")
	for namespace, want := range map[string]string{"suite": "linux", "beside": "windows"} {
		if got := admitted(t, client, namespace, &corev1.Pod{}); got.Spec.NodeSelector[osLabel] != want {
			t.Errorf("in namespace %s the pod selects %v, want %s", namespace, got.Spec.NodeSelector, want)
		}
	}
	must(t, one.Remove(t.Context()))
	alive = alive[1:]
	if got := admitted(t, client, "beside", &corev1.Pod{}); got.Spec.NodeSelector[osLabel] != "windows" {
		t.Error("the shard that went took the other's steering with it")
	}
	// One that died is not there to remove its own.
	three := shard(3)
	must(t, three.Own(t.Context(), toWindows, "w"))
	alive = alive[:1]
	must(t, two.Remove(t.Context()))
	if left := names(t, dyn, policies); len(left) > 0 {
		t.Errorf("the last shard left %q", left)
	}
}

// A run without the lock takes nothing from those that live.
func TestWithoutTheLockTheLivingKeepTheirs(t *testing.T) {
	client, dyn := start(t)
	locked, err := steer.New(t.Context(), client, dyn, member("locked", 1))
	must(t, err)
	must(t, locked.Own(t.Context(), toWindows, "x"))
	beside := member("beside", 1)
	alive := living{"locked-1"}
	beside.Unlocked, beside.Peers = true, alive.peersOf(beside.ID)
	other, err := steer.New(t.Context(), client, dyn, beside)
	must(t, err)
	must(t, other.Apply(t.Context(), toLinux))
	if left := names(t, dyn, policies); len(left) != 1 {
		t.Errorf("of the living run's policies %q are left", left)
	}
}
