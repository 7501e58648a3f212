package judge

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// observed is what Settled is asked about: two Deployments, one with two replicas,
// one that says nothing of them and so has one, all as it should be.
type observed struct {
	deployments []appsv1.Deployment
	sets        []appsv1.ReplicaSet
	pods        []v1.Pod
}

func settled() *observed {
	two := int32(2)
	ready := func(name string) v1.Pod {
		p := pod(name, windows, "10.244.1.2")
		p.Status.Phase = v1.PodRunning
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue}, {Type: v1.PodReady, Status: v1.ConditionTrue}}
		return p
	}
	return &observed{
		deployments: []appsv1.Deployment{
			{
				ObjectMeta: metav1.ObjectMeta{Name: "two", Generation: 3},
				Spec:       appsv1.DeploymentSpec{Replicas: &two},
				Status:     appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, ReadyReplicas: 2},
			},
			{
				ObjectMeta: metav1.ObjectMeta{Name: "one", Generation: 1},
				Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, ReadyReplicas: 1},
			},
		},
		sets: []appsv1.ReplicaSet{
			{ObjectMeta: metav1.ObjectMeta{Name: "two-1"}, Spec: appsv1.ReplicaSetSpec{Replicas: &two}, Status: appsv1.ReplicaSetStatus{Replicas: 2, ReadyReplicas: 2}},
			{ObjectMeta: metav1.ObjectMeta{Name: "one-1"}, Status: appsv1.ReplicaSetStatus{Replicas: 1, ReadyReplicas: 1}},
		},
		pods: []v1.Pod{ready("two-1-a"), ready("two-1-b"), ready("one-1-a")},
	}
}

func TestSettled(t *testing.T) {
	t.Parallel()
	none := int32(0)
	for name, c := range map[string]struct {
		change func(o *observed)
		want   []string
	}{
		"as it should be":  {func(*observed) {}, nil},
		"nothing was made": {func(o *observed) { *o = observed{} }, nil},
		"a Deployment's pod is not ready": {
			func(o *observed) { o.deployments[0].Status.ReadyReplicas = 1 },
			[]string{"Deployment two has 2 pods, 1 of them ready, and asks for 2"},
		},
		"a Deployment has a pod too many": {
			func(o *observed) { o.deployments[1].Status.Replicas = 2 },
			[]string{"Deployment one has 2 pods, 1 of them ready, and asks for 1"},
		},
		"a Deployment is not looked at since its change": {
			func(o *observed) { o.deployments[0].Generation = 4 },
			[]string{"Deployment two has 2 pods, 2 of them ready, and asks for 2"},
		},
		"a Deployment is to have none": {
			func(o *observed) { o.deployments[1].Spec.Replicas = &none },
			[]string{"Deployment one has 1 pod, 1 of them ready, and asks for 0", "3 pods are there, and the Deployments ask for 2"},
		},
		"a Deployment has had no pod": {
			func(o *observed) {
				o.deployments[1].Status = appsv1.DeploymentStatus{}
				o.sets, o.pods = o.sets[:1], o.pods[:2]
			},
			[]string{"Deployment one has 0 pods, 0 of them ready, and asks for 1", "1 ReplicaSet for 2 Deployments", "2 pods are there, and the Deployments ask for 3"},
		},
		"a ReplicaSet too many": {
			func(o *observed) {
				o.sets = append(o.sets, appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "two-0"}, Spec: appsv1.ReplicaSetSpec{Replicas: &none}})
			},
			[]string{"3 ReplicaSets for 2 Deployments"},
		},
		"a ReplicaSet's pod is not ready": {
			func(o *observed) { o.sets[0].Status.ReadyReplicas = 1 },
			[]string{"ReplicaSet two-1 has 2 pods, 1 of them ready, and asks for 2"},
		},
		"a ReplicaSet has a pod too many": {
			func(o *observed) { o.sets[1].Status.Replicas = 2 },
			[]string{"ReplicaSet one-1 has 2 pods, 1 of them ready, and asks for 1"},
		},
		"a pod too many": {
			func(o *observed) { o.pods = append(o.pods, o.pods[0]) },
			[]string{"4 pods are there, and the Deployments ask for 3"},
		},
		"a pod too few": {
			func(o *observed) { o.pods = o.pods[:2] },
			[]string{"2 pods are there, and the Deployments ask for 3"},
		},
		"a pod on its way out": {
			func(o *observed) { o.pods[2].DeletionTimestamp = &metav1.Time{} },
			[]string{"1 pod is still terminating"},
		},
		"a pod on its way out beside the others": {
			func(o *observed) {
				old := o.pods[2]
				old.DeletionTimestamp = &metav1.Time{}
				o.pods = append(o.pods, old)
			},
			[]string{"1 pod is still terminating", "4 pods are there, and the Deployments ask for 3"},
		},
		"a pod elsewhere": {
			func(o *observed) { o.pods[0].Spec.NodeName = "linux-1" },
			[]string{`pod two-1-a is on node "linux-1", which is not under test`},
		},
		"a pod on no node": {
			func(o *observed) { o.pods[0].Spec.NodeName = "" },
			[]string{`pod two-1-a is on node "", which is not under test`},
		},
		"a pod is not ready": {
			func(o *observed) { o.pods[1].Status.Conditions[1].Status = v1.ConditionFalse },
			[]string{"pod two-1-b is not ready"},
		},
		"nobody knows whether a pod is ready": {
			func(o *observed) { o.pods[1].Status.Conditions[1].Status = v1.ConditionUnknown },
			[]string{"pod two-1-b is not ready"},
		},
		"nothing is said of whether a pod is ready": {
			func(o *observed) { o.pods[1].Status.Conditions = nil },
			[]string{"pod two-1-b is not ready"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := settled()
			c.change(o)
			same(t, Settled(o.deployments, o.sets, o.pods, func(node string) bool { return node == windows }), c.want)
		})
	}
}
