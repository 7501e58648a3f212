package judge

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Endpoints returns what is other than that a Service has just those pods as its
// endpoints, by its slices: in each family that there are slices of, each pod is there,
// at an address of its own, and ready. Pods are told apart by UID, since names and
// addresses are used again. None is none.
func Endpoints(held []discoveryv1.EndpointSlice, pods []v1.Pod) []string {
	byUID := map[types.UID]*v1.Pod{}
	for i := range pods {
		byUID[pods[i].UID] = &pods[i]
	}
	problems := map[string]bool{} // one may be in two slices for a moment
	found := map[discoveryv1.AddressType]map[types.UID]bool{}
	for i := range held {
		family := held[i].AddressType
		if found[family] == nil {
			found[family] = map[types.UID]bool{}
		}
		for j := range held[i].Endpoints {
			uid, problem := endpoint(&held[i].Endpoints[j], byUID)
			found[family][uid] = true
			if problem != "" {
				problems[problem] = true
			}
		}
	}
	if len(found) == 0 {
		return []string{"the Service has no EndpointSlice"}
	}
	for family, uids := range found {
		for i := range pods {
			if !uids[pods[i].UID] {
				problems[fmt.Sprintf("pod %s is no %s endpoint", pods[i].Name, family)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(problems))
}

// endpoint returns of which pod an endpoint is, and what is wrong with it.
func endpoint(e *discoveryv1.Endpoint, pods map[types.UID]*v1.Pod) (types.UID, string) {
	if e.TargetRef == nil {
		return "", fmt.Sprintf("the endpoint %v is no pod's", e.Addresses)
	}
	ref := e.TargetRef
	pod := pods[ref.UID]
	if pod == nil {
		return ref.UID, fmt.Sprintf("the endpoint %v is of a pod %s that is gone (UID %s)", e.Addresses, ref.Name, ref.UID)
	}
	for _, address := range e.Addresses {
		if !slices.ContainsFunc(pod.Status.PodIPs, func(ip v1.PodIP) bool { return ip.IP == address }) {
			return ref.UID, fmt.Sprintf("the endpoint %v of pod %s is not at the pod's address: that is %s", e.Addresses, pod.Name, pod.Status.PodIP)
		}
	}
	if len(e.Addresses) == 0 {
		return ref.UID, fmt.Sprintf("the endpoint of pod %s has no address", pod.Name)
	}
	if e.Conditions.Ready != nil && !*e.Conditions.Ready {
		return ref.UID, fmt.Sprintf("the endpoint %v of pod %s is not ready", e.Addresses, pod.Name)
	}
	return ref.UID, ""
}
