package mutants_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"
)

// fault breaks something, until the function that it returns is called.
type fault func(b *bed) (undo func())

// address gives every other pod an address that it must not have: that of its node,
// or of the pod before it.
func address(wrong func(pod, before *v1.Pod) string) fault {
	return func(b *bed) func() {
		var before *v1.Pod
		return b.onPods("distinct", func(ctx context.Context, pod *v1.Pod) {
			switch {
			case pod.Status.PodIP == "" || pod.Annotations["mutant"] != "":
				return
			case before == nil || before.Name == pod.Name:
				before = pod
				return
			}
			ip := wrong(pod, before)
			before = nil
			status, err := json.Marshal(v1.PodStatus{PodIP: ip, PodIPs: []v1.PodIP{{IP: ip}}})
			b.must(err)
			patch := fmt.Sprintf(`{"metadata": {"annotations": {"mutant": "yes"}}, "status": %s}`, status)
			_, err = b.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
			if !apierrors.IsNotFound(err) {
				b.must(err)
			}
		})
	}
}

func ofItsNode(pod, _ *v1.Pod) string { return pod.Status.HostIP }

func ofItsNeighbour(_, before *v1.Pod) string { return before.Status.PodIP }

// whenPending does something once when the scheduler has found no node for the pod
// that asks for too much.
func whenPending(do func(ctx context.Context, b *bed, pod *v1.Pod), undo func(b *bed)) fault {
	return func(b *bed) func() {
		var once sync.Once
		stop := b.onPods("pending", func(ctx context.Context, pod *v1.Pod) {
			if pod.Name != "pending" {
				return
			}
			for _, c := range pod.Status.Conditions {
				if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
					once.Do(func() { do(ctx, b, pod) })
				}
			}
		})
		return func() {
			stop()
			if undo != nil {
				undo(b)
			}
		}
	}
}

func bindIt(ctx context.Context, b *bed, pod *v1.Pod) {
	b.must(b.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: v1.ObjectReference{Kind: "Node", Name: b.windows(ctx)[0].Name},
	}, metav1.CreateOptions{}))
}

// growNode gives a node a thousand times what it has.
func growNode(ctx context.Context, b *bed, _ *v1.Pod) {
	b.changeNode(ctx, b.windows(ctx)[0].Name, func(node *v1.Node) {
		for _, list := range []v1.ResourceList{node.Status.Allocatable, node.Status.Capacity} {
			for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
				q := list[name]
				list[name] = *resource.NewQuantity(q.Value()*1000, q.Format)
			}
		}
	})
}

func shrinkNode(b *bed) {
	like := b.windows(b.Context())[1]
	b.changeNode(b.Context(), b.windows(b.Context())[0].Name, func(node *v1.Node) {
		node.Status.Allocatable, node.Status.Capacity = like.Status.Allocatable, like.Status.Capacity
	})
}

func (b *bed) changeNode(ctx context.Context, name string, change func(*v1.Node)) {
	b.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := b.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(node)
		_, err = b.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	}))
}

// taintWindows puts a taint on all Windows nodes, and takes from pods what would
// let them bear it.
func taintWindows(b *bed) func() {
	taints := func(taints []v1.Taint) {
		for _, node := range b.windows(b.Context()) {
			b.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				node, err := b.client.CoreV1().Nodes().Get(b.Context(), node.Name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				node.Spec.Taints = taints
				_, err = b.client.CoreV1().Nodes().Update(b.Context(), node, metav1.UpdateOptions{})
				return err
			}))
		}
	}
	taints([]v1.Taint{{Key: "example.com/foreign", Effect: v1.TaintEffectNoSchedule}})
	undo := mutate("pending", `has(object.spec.tolerations) ? [JSONPatch{op: "remove", path: "/spec/tolerations"}] : []`,
		func(pod *v1.Pod) bool {
			return !slices.ContainsFunc(pod.Spec.Tolerations, func(t v1.Toleration) bool { return t.Key == "example.com/foreign" })
		})(b)
	return func() {
		undo()
		taints(nil)
	}
}

// mutate puts an admission policy into force for the pods of tests of the
// framework's base name; in tells whether a pod was changed by it.
func mutate(base, patch string, in func(*v1.Pod) bool) fault {
	return mutateAny(base, "", "pods", patch, func(ctx context.Context, b *bed, namespace string) (bool, error) {
		pod, err := b.client.CoreV1().Pods(namespace).Create(ctx, probePod(), dryCreate)
		return err == nil && in(pod), err
	})
}

var dryCreate = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// mutateAny is mutate for any resource; in tells of a namespace like that of a test
// whether objects are changed there.
func mutateAny(base, group, resource, patch string, in func(ctx context.Context, b *bed, namespace string) (bool, error)) fault {
	return func(b *bed) func() {
		undo := b.policy("Mutating", base, group, resource, "CREATE, UPDATE", fmt.Sprintf(`
  reinvocationPolicy: Never
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: %q}}]`, patch))
		probe := b.probe(base)
		b.until("the policy is in force", func(ctx context.Context) (bool, error) {
			changed, err := in(ctx, b, probe)
			return err == nil && changed, nil
		})
		return func() {
			undo()
			b.until("the policy is out of force", func(ctx context.Context) (bool, error) {
				changed, err := in(ctx, b, probe)
				return err == nil && !changed, nil
			})
		}
	}
}

// policy makes an admission policy for what happens to objects of tests of the
// framework's base name, and its binding.
func (b *bed) policy(kind, base, group, objects, operations, spec string) (undo func()) {
	b.Helper()
	const v1 = "apiVersion: admissionregistration.k8s.io/v1\n"
	name := "mutant-" + base + "-" + objects
	head := fmt.Sprintf("metadata: {name: %s}\nspec:\n", name)
	actions := ""
	if kind == "Validating" {
		actions = "  validationActions: [Deny]\n"
	}
	resource := strings.ToLower(kind) + "admissionpolic"
	made := map[string]string{
		resource + "ies": v1 + "kind: " + kind + "AdmissionPolicy\n" + head + fmt.Sprintf(`  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {e2e-framework: %s}}
    resourceRules: [{apiGroups: [%q], apiVersions: [v1], operations: [%s], resources: [%s]}]`, base, group, operations, objects) + spec,
		resource + "ybindings": v1 + "kind: " + kind + "AdmissionPolicyBinding\n" + head + "  policyName: " + name + "\n" + actions,
	}
	of := func(resource string) dynamic.ResourceInterface {
		return b.dynamic.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource})
	}
	for resource, text := range made {
		object := &unstructured.Unstructured{}
		b.must(yaml.Unmarshal([]byte(text), &object.Object))
		_, err := of(resource).Create(b.Context(), object, metav1.CreateOptions{})
		b.must(err)
	}
	return func() {
		for resource := range made {
			b.must(of(resource).Delete(b.Context(), name, metav1.DeleteOptions{}))
		}
	}
}

// probe returns a namespace that policies take for one of a test.
func (b *bed) probe(base string) string {
	name := "probe-of-" + base
	_, err := b.client.CoreV1().Namespaces().Create(b.Context(), &v1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"e2e-framework": base}},
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		b.must(err)
	}
	_, err = b.client.CoreV1().ServiceAccounts(name).Create(b.Context(), &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		b.must(err)
	}
	return name
}

// probePod has all that a fault changes in pods.
func probePod() *v1.Pod {
	container := func(name string) v1.Container {
		limits := v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}
		return v1.Container{Name: name, Image: "pause", Args: make([]string, 4), Resources: limits, VolumeMounts: []v1.VolumeMount{{Name: "share", MountPath: "/share"}}}
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe", Labels: map[string]string{"app": "churn"}},
		Spec: v1.PodSpec{
			Containers:  []v1.Container{container("a"), container("b"), container("c")},
			DNSConfig:   &v1.PodDNSConfig{Searches: []string{"example.com"}},
			HostAliases: []v1.HostAlias{{IP: "192.0.2.1", Hostnames: []string{"example.com"}}},
			Volumes:     []v1.Volume{{Name: "share", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/nowhere"}}}},
			Tolerations: []v1.Toleration{{Key: "example.com/foreign", Operator: v1.TolerationOpExists}},
		},
	}
}

// keepPods puts a finalizer on all pods of a test, as a component would that has
// stopped taking its own away.
func keepPods(b *bed) func() {
	const finalizer = "example.com/never-taken-off"
	undo := mutate("churn", fmt.Sprintf(`[JSONPatch{op: "add", path: "/metadata/finalizers", value: [%q]}]`, finalizer),
		func(pod *v1.Pod) bool { return len(pod.Finalizers) > 0 })(b)
	return func() {
		undo()
		pods, err := b.client.CoreV1().Pods(v1.NamespaceAll).List(b.Context(), metav1.ListOptions{})
		b.must(err)
		for i := range pods.Items {
			p := &pods.Items[i]
			if len(p.Finalizers) == 0 {
				continue
			}
			_, err := b.client.CoreV1().Pods(p.Namespace).Patch(b.Context(), p.Name, types.JSONPatchType,
				[]byte(`[{"op": "remove", "path": "/metadata/finalizers"}]`), metav1.PatchOptions{})
			if !apierrors.IsNotFound(err) {
				b.must(err)
			}
		}
	}
}

// atChurn does something once when the pod is rescheduled for the nth time.
func atChurn(n int, do func(ctx context.Context, b *bed) (undo func())) fault {
	return func(b *bed) func() {
		var mu sync.Mutex
		seen := map[types.UID]bool{}
		var undo atomic.Pointer[func()]
		stop := b.onPods("churn", func(ctx context.Context, pod *v1.Pod) {
			mu.Lock()
			defer mu.Unlock()
			if pod.Labels["app"] != "churn" || seen[pod.UID] {
				return
			}
			seen[pod.UID] = true
			if len(seen) == n {
				f := do(ctx, b)
				undo.Store(&f)
			}
		})
		return func() {
			stop()
			if f := undo.Load(); f != nil {
				(*f)()
			}
		}
	}
}

func gatePods(_ context.Context, b *bed) func() {
	return mutate("churn", `object.metadata.?labels.?app.orValue("") == "churn" ? [JSONPatch{op: "add", path: "/spec/schedulingGates", value: [{"name": "example.com/closed"}]}] : []`,
		func(pod *v1.Pod) bool { return len(pod.Spec.SchedulingGates) > 0 })(b)
}

// loseNode lets a node say that it is not ready; kwok says otherwise soon.
func loseNode(ctx context.Context, b *bed) func() {
	b.unready(ctx, b.windows(ctx)[3].Name)
	return func() {}
}

func (b *bed) unready(ctx context.Context, name string) {
	b.changeNode(ctx, name, func(node *v1.Node) {
		for i := range node.Status.Conditions {
			if c := &node.Status.Conditions[i]; c.Type == v1.NodeReady {
				c.Status, c.Reason = v1.ConditionFalse, "Mutant"
			}
		}
	})
}

// refuseDeletions keeps everybody from deleting the pods of the disturbance.
func refuseDeletions(b *bed) func() {
	undo := b.policy("Validating", "churn", "", "pods", "DELETE", `
  validations: [{expression: 'oldObject.metadata.?labels.?app.orValue("") != "noise"', message: nobody deletes these}]`)
	probe := b.probe("churn")
	pod := probePod()
	pod.Labels["app"], pod.Spec.NodeName = "noise", "nowhere"
	_, err := b.client.CoreV1().Pods(probe).Create(b.Context(), pod, metav1.CreateOptions{})
	b.must(err)
	b.until("deletions are refused", func(ctx context.Context) (bool, error) {
		err := b.client.CoreV1().Pods(probe).Delete(ctx, pod.Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err), nil
	})
	return undo
}

// ofWriters changes the pods that share files.
func ofWriters(name, patch string, in func(*v1.Pod) bool) fault {
	when := fmt.Sprintf("object.metadata.?name.orValue(\"\").matches(%q)", "^("+name+"|probe)$")
	return mutate("share", fmt.Sprintf("%s ? [%s] : []", when, patch), in)
}

var (
	ownVolume = ofWriters("share-containers", `
		JSONPatch{op: "add", path: "/spec/volumes/-", value: {"name": dyn("own"), "emptyDir": dyn({})}},
		JSONPatch{op: "replace", path: "/spec/containers/2/volumeMounts/0/name", value: "own"}`,
		func(pod *v1.Pod) bool { return pod.Spec.Containers[2].VolumeMounts[0].Name == "own" })
	readOnly = ofWriters("share-containers", `
		JSONPatch{op: "add", path: "/spec/containers/2/volumeMounts/0/readOnly", value: true}`,
		func(pod *v1.Pod) bool { return pod.Spec.Containers[2].VolumeMounts[0].ReadOnly })
	ownFolder = ofWriters("share-[abc]", `
		JSONPatch{op: "replace", path: "/spec/volumes/0", value: {"name": dyn("share"), "emptyDir": dyn({})}}`,
		func(pod *v1.Pod) bool { return pod.Spec.Volumes[0].EmptyDir != nil })
)

// leaveOut takes one endpoint out of every slice of a test.
func leaveOut(base string) fault {
	return mutateAny(base, "discovery.k8s.io", "endpointslices", `has(object.endpoints) && size(object.endpoints) > 0 ? [JSONPatch{op: "remove", path: "/endpoints/0"}] : []`,
		func(ctx context.Context, b *bed, namespace string) (bool, error) {
			s, err := b.client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, sliceOf("probe", "192.0.2.1"), dryCreate)
			return err == nil && len(s.Endpoints) == 0, err
		})
}

// keepEndpoints makes a slice of the Service's endpoints that nobody ever changes.
func keepEndpoints(b *bed) func() {
	var addresses []string
	return b.onPods("ten", func(ctx context.Context, pod *v1.Pod) {
		if pod.Labels["app"] != "ten" || pod.Status.PodIP == "" || slices.Contains(addresses, pod.Status.PodIP) {
			return
		}
		if addresses = append(addresses, pod.Status.PodIP); len(addresses) == 10 {
			_, err := b.client.DiscoveryV1().EndpointSlices(pod.Namespace).Create(ctx, sliceOf("ten", addresses...), metav1.CreateOptions{})
			b.must(err)
		}
	})
}

// addStranger makes an endpoint of the Service of a pod that is none of its own.
func addStranger(b *bed) func() {
	var once sync.Once
	return b.onPods("ten", func(ctx context.Context, pod *v1.Pod) {
		if pod.Name != "client-other" || pod.Status.PodIP == "" {
			return
		}
		once.Do(func() {
			_, err := b.client.DiscoveryV1().EndpointSlices(pod.Namespace).Create(ctx, sliceOf("ten", pod.Status.PodIP), metav1.CreateOptions{})
			b.must(err)
		})
	})
}

// sliceOf is a slice of endpoints of a Service.
func sliceOf(service string, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{GenerateName: "mutant-", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8080)), Protocol: new(v1.ProtocolTCP)}},
	}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}})
	}
	return s
}
