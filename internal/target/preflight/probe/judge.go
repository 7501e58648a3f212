package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// System names the target for people.
func (t *Target) System() string {
	switch {
	case t.OS == specs.Linux:
		return "Linux"
	case t.Build == "":
		return "Windows"
	}
	return "Windows " + t.Build
}

func nodeOf(p *corev1.Pod) string {
	if p == nil {
		return ""
	}
	return p.Spec.NodeName
}

func hostPort(ip string) string { return net.JoinHostPort(ip, strconv.Itoa(serverPort)) }

// hasStarted reports whether a container runs, or has run.
func hasStarted(p *corev1.Pod, name string) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == name && cluster.Ran(&c)
	})
}

func allStarted(p *corev1.Pod) bool {
	return !slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return !hasStarted(p, c.Name) })
}

// ended reports whether the only container has run, and ended.
func ended(p *corev1.Pod) bool {
	return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Terminated != nil && hasStarted(p, p.Spec.Containers[0].Name)
}

// addressed reports whether the only container runs, and has an address.
func addressed(p *corev1.Pod) bool {
	return p.Status.PodIP != "" && p.Status.Phase == corev1.PodRunning
}

// sandboxed reports whether the pod has come so far that images are pulled. A
// pod without a node has a [cluster.Trouble] of its own.
func sandboxed(p *corev1.Pod) bool {
	if p.Spec.NodeName == "" || p.Status.PodIP != "" {
		return true
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == "PodReadyToStartContainers" && c.Status == corev1.ConditionTrue
	})
}

// answer says what a pod that has ended has to say.
func answer(p *corev1.Pod) (State, string) {
	t := p.Status.ContainerStatuses[0].State.Terminated
	said := cluster.Said(t.Message)
	if t.ExitCode == 0 {
		return OK, said
	}
	if said == "" {
		said = cluster.Said(t.Reason)
	}
	return Failed, fmt.Sprintf("%s (exit code %d)", said, t.ExitCode)
}

// waitingFor says where a pod stood when time was up, or why there is none.
func waitingFor(p *corev1.Pod, err error) string {
	switch {
	case p == nil || !errors.Is(err, context.DeadlineExceeded):
		return cluster.Said(err.Error())
	case cluster.Trouble(p) != "":
		return "time is up: " + cluster.Trouble(p)
	case p.Spec.NodeName == "":
		return "time is up: its pod has no node"
	case !sandboxed(p):
		return "time is up: its pod has no sandbox"
	}
	return "time is up: its pod has not come to its end, such as for an image that is pulled"
}

// lastWarning is the last event that says that something is wrong with a pod; ""
// where events are not to be had.
func (p *prober) lastWarning(ctx context.Context, pod *corev1.Pod) string {
	text, last := "", time.Time{}
	for _, e := range p.events(ctx, pod) {
		at := e.LastTimestamp.Time
		if at.IsZero() {
			at = e.EventTime.Time
		}
		if e.Type == corev1.EventTypeWarning && !at.Before(last) {
			text, last = cluster.Said(e.Reason+": "+e.Message), at
		}
	}
	return text
}

func (p *prober) events(ctx context.Context, pod *corev1.Pod) []corev1.Event {
	list, err := p.client.CoreV1().Events(p.namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(pod.UID)).String(),
	})
	if err != nil {
		return nil
	}
	return list.Items
}

// What the kubelet says of a pull
// (https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/images/image_manager.go#L374).
var (
	pulled = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^Successfully pulled image "([^"]{1,300})" in ([0-9a-zµ.]{1,30})`)
	})
	present = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^Container image "([^"]{1,300})" already present`) })
)

// pulls are what the events of a pod say of its images.
func (p *prober) pulls(ctx context.Context, pod *corev1.Pod) []Pull {
	var all []Pull
	for _, e := range p.events(ctx, pod) {
		if m := pulled().FindStringSubmatch(e.Message); m != nil {
			if d, err := time.ParseDuration(m[2]); err == nil {
				all = append(all, Pull{Image: m[1], Seconds: d.Seconds()})
			}
		} else if m := present().FindStringSubmatch(e.Message); m != nil {
			all = append(all, Pull{Image: m[1]})
		}
	}
	slices.SortFunc(all, func(a, b Pull) int { return strings.Compare(a.Image, b.Image) })
	return all
}

func describe(pulls []Pull) string {
	var parts []string
	for _, p := range pulls {
		if p.Seconds > 0 {
			parts = append(parts, fmt.Sprintf("%s pulled in %.1f s", p.Image, p.Seconds))
		} else {
			parts = append(parts, p.Image+" was there")
		}
	}
	if len(parts) == 0 {
		return "agnhost and pause start"
	}
	return strings.Join(parts, ", ")
}
