package judge

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// RebootAsked reports whether, by the log of script reboot, the node was told to reboot.
func RebootAsked(log string) error {
	var said struct {
		Asked bool `json:"asked"`
	}
	if err := answer(log, &said); err != nil {
		return fmt.Errorf("script reboot: %w", err)
	}
	if !said.Asked {
		return fmt.Errorf("script reboot: the node was not told to reboot")
	}
	return nil
}

// Rebooted returns what is other than that nodes have been rebooted and are as they
// were before: each has another boot id, is ready, and takes pods. None is none.
func Rebooted(before, now []v1.Node) []string {
	var problems []string
	for i := range before {
		old := &before[i]
		at := slices.IndexFunc(now, func(n v1.Node) bool { return n.Name == old.Name })
		if at < 0 {
			problems = append(problems, fmt.Sprintf("node %s is gone", old.Name))
			continue
		}
		if problem := rebooted(old, &now[at]); problem != "" {
			problems = append(problems, fmt.Sprintf("node %s %s", old.Name, problem))
		}
	}
	return problems
}

func rebooted(old, now *v1.Node) string {
	if id := now.Status.NodeInfo.BootID; id == "" || id == old.Status.NodeInfo.BootID {
		return fmt.Sprintf("was not rebooted: its boot id is still %q", id)
	}
	for _, c := range now.Status.Conditions {
		if c.Type == v1.NodeReady && c.Status != v1.ConditionTrue {
			return "is not ready: " + cut(c.Message)
		}
	}
	if now.UID != old.UID {
		return "has left the cluster and joined it anew"
	}
	if now.Spec.Unschedulable && !old.Spec.Unschedulable {
		return "is cordoned"
	}
	for _, t := range now.Spec.Taints {
		if !slices.ContainsFunc(old.Spec.Taints, func(was v1.Taint) bool { return was.Key == t.Key && was.Effect == t.Effect }) {
			return fmt.Sprintf("has the taint %s, which it did not have before", t.Key)
		}
	}
	return ""
}

// Containers returns the ids of the containers of pods.
func Containers(pods []v1.Pod) map[string]bool {
	ids := map[string]bool{}
	for i := range pods {
		for _, c := range pods[i].Status.ContainerStatuses {
			if c.ContainerID != "" {
				ids[c.ContainerID] = true
			}
		}
	}
	return ids
}

// Recovered returns what is other than that of each app, by label, as many pods are ready
// as are wanted, in containers that were not there before, and that none is stuck. Pods
// that ended with their node may be left, beside those that took their place. None is
// none.
func Recovered(wanted map[string]int, before map[string]bool, pods []v1.Pod) []string {
	var problems []string
	is := map[string]int{}
	for i := range pods {
		p := &pods[i]
		switch {
		case wanted[p.Labels["app"]] == 0:
			continue
		case p.DeletionTimestamp != nil:
			problems = append(problems, fmt.Sprintf("pod %s on node %s is still terminating", p.Name, p.Spec.NodeName))
		case p.Status.Phase == v1.PodFailed || p.Status.Phase == v1.PodSucceeded:
		case !Ready(p):
			problems = append(problems, fmt.Sprintf("pod %s on node %s is %s and not ready", p.Name, p.Spec.NodeName, p.Status.Phase))
		default:
			is[p.Labels["app"]]++
			for id := range Containers(pods[i : i+1]) {
				if before[id] {
					problems = append(problems, fmt.Sprintf("a container of pod %s on node %s has run since before the reboot", p.Name, p.Spec.NodeName))
				}
			}
		}
	}
	for app, n := range wanted {
		if is[app] != n {
			problems = append(problems, fmt.Sprintf("%d of %d pods of %s are ready", is[app], n, app))
		}
	}
	slices.Sort(problems)
	return problems
}
