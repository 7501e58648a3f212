package judge

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
)

// Settled returns what is not as the Deployments ask: each has one ReplicaSet and
// as many pods as replicas, all ready and on nodes for which on holds, and no pod
// is on its way out. None is none.
func Settled(deployments []appsv1.Deployment, sets []appsv1.ReplicaSet, pods []v1.Pod, on func(node string) bool) []string {
	var problems []string
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	wanted := 0
	for i := range deployments {
		d := &deployments[i]
		replicas := replicasOf(d.Spec.Replicas)
		wanted += int(replicas)
		if d.Status.ReadyReplicas != replicas || d.Status.Replicas != replicas || d.Status.ObservedGeneration < d.Generation {
			bad("Deployment %s has %s, %d of them ready, and asks for %d", d.Name, count(int(d.Status.Replicas), "pod"), d.Status.ReadyReplicas, replicas)
		}
	}
	if len(sets) != len(deployments) {
		bad("%s for %s", count(len(sets), "ReplicaSet"), count(len(deployments), "Deployment"))
	}
	for i := range sets {
		if s := &sets[i]; s.Status.ReadyReplicas != replicasOf(s.Spec.Replicas) || s.Status.Replicas != replicasOf(s.Spec.Replicas) {
			bad("ReplicaSet %s has %s, %d of them ready, and asks for %d", s.Name, count(int(s.Status.Replicas), "pod"), s.Status.ReadyReplicas, replicasOf(s.Spec.Replicas))
		}
	}
	terminating := 0
	for i := range pods {
		switch p := &pods[i]; {
		case p.DeletionTimestamp != nil:
			terminating++
		case !on(p.Spec.NodeName):
			bad("pod %s is on node %q, which is not under test", p.Name, p.Spec.NodeName)
		case !Ready(p):
			bad("pod %s is not ready", p.Name)
		}
	}
	if terminating > 0 {
		bad("%s still terminating", are(terminating, "pod"))
	}
	if len(pods) != wanted {
		bad("%s there, and the Deployments ask for %d", are(len(pods), "pod"), wanted)
	}
	return problems
}

func replicasOf(n *int32) int32 {
	if n == nil {
		return 1 // the API's default
	}
	return *n
}

// Ready reports whether a pod is ready.
func Ready(pod *v1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}
