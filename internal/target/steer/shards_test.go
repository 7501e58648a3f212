package steer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

func TestShardsSteerTogetherAndTheFirstToGoTakesNothingFromTheOther(t *testing.T) {
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
	must(t, one.Apply(t.Context(), toWindows))
	must(t, two.Apply(t.Context(), toWindows))
	got := admitted(t, client, "suite", &corev1.Pod{})
	if got.Spec.NodeSelector[osLabel] != "windows" {
		t.Error("the pod is not steered")
	}
	count := 0
	for _, toleration := range got.Spec.Tolerations {
		if toleration.Key == "os" {
			count++
		}
	}
	if count != 1 {
		t.Errorf("the pod has the toleration %d times", count)
	}
	must(t, one.Remove(t.Context()))
	alive = alive[1:]
	if got := admitted(t, client, "suite", &corev1.Pod{}); got.Spec.NodeSelector[osLabel] != "windows" {
		t.Error("the shard that went took the other's steering with it")
	}
	// One that died is not there to remove its own.
	three := shard(3)
	must(t, three.Apply(t.Context(), toWindows))
	alive = alive[:1]
	must(t, two.Remove(t.Context()))
	if left := names(t, dyn, policies); len(left) > 0 {
		t.Errorf("the last shard left %q", left)
	}
}

func TestAShardThatStillHasOtherConditionsInForceDoesNotSpoilTheGroup(t *testing.T) {
	client, dyn := start(t)
	waiting, err := steer.New(t.Context(), client, dyn, member("nightly", 1))
	must(t, err)
	must(t, waiting.Apply(t.Context(), toWindows))
	second := member("nightly", 2)
	second.Peers = (&living{"nightly-1"}).peersOf(second.ID)
	working, err := steer.New(t.Context(), client, dyn, second)
	must(t, err)
	must(t, working.Apply(t.Context(), toLinux))
	if got := admitted(t, client, "suite", &corev1.Pod{}); got.Spec.NodeSelector[osLabel] != "linux" {
		t.Errorf("the pod selects %q", got.Spec.NodeSelector)
	}
	must(t, waiting.Apply(t.Context(), toLinux))
	must(t, working.Remove(t.Context()))
	if got := admitted(t, client, "suite", &corev1.Pod{}); got.Spec.NodeSelector[osLabel] != "linux" {
		t.Errorf("the pod selects %q", got.Spec.NodeSelector)
	}
}

func TestAPolicyOfSomebodyElseIsNamedAndLeftAlone(t *testing.T) {
	client, dyn := start(t)
	steering, err := steer.New(t.Context(), client, dyn, member("run-1", 1))
	must(t, err)
	foreign := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1",
		"kind":       "MutatingAdmissionPolicy",
		"metadata":   map[string]any{"name": "op-readiness-steering-1", "annotations": map[string]any{"theirs": "yes"}},
		"spec": map[string]any{
			"reinvocationPolicy": "Never",
			"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
				"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"configmaps"},
			}}},
			"mutations": []any{map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{"expression": `false ? [JSONPatch{op: "remove", path: "/data"}] : []`}}},
		},
	}}
	_, err = dyn.Resource(policies).Create(t.Context(), foreign, metav1.CreateOptions{})
	must(t, err)
	_, created := steer.New(t.Context(), client, dyn, member("run-2", 1))
	for what, err := range map[string]error{"a run that begins": created, "one that goes on": steering.Apply(t.Context(), toWindows)} {
		if !errors.Is(err, steer.ErrForeign) || !strings.Contains(err.Error(), "kubectl delete mutatingadmissionpolicy op-readiness-steering-1") {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, steering.Remove(t.Context()))
	left, err := dyn.Resource(policies).Get(t.Context(), "op-readiness-steering-1", metav1.GetOptions{})
	if err != nil || left.GetAnnotations()["theirs"] != "yes" {
		t.Errorf("the policy of somebody else is %v: %v", left, err)
	}
}
