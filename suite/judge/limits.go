package judge

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// CPUSample is how much time on CPUs a container had taken at a time.
type CPUSample struct {
	Time time.Time
	Used time.Duration
}

// leastStretch is how far samples are apart at least: kubelets read the clock and the
// counters one after the other, which over less makes a difference.
const leastStretch = 10 * time.Second

// AddSample adds what a kubelet says, unless it says the same sample again, or one that
// is too near to the last.
func AddSample(samples []CPUSample, s CPUSample) []CPUSample {
	if n := len(samples); n > 0 && s.Time.Sub(samples[n-1].Time) < leastStretch {
		return samples
	}
	return append(samples, s)
}

// CPU is what a container may take, in cores: on average and nearly always at most so
// much, and on average at least so much, because who takes nothing shows no limit.
// Zero asks nothing.
type CPU struct {
	Mean, NearlyAlways, AtLeast float64
}

// Problems returns what samples show other than that, over at least so many stretches
// between two of them. None is none.
func (c CPU) Problems(samples []CPUSample, fewest int) []string {
	rates, why := Rates(samples)
	switch {
	case why != "":
		return []string{why}
	case len(rates) == 0 || len(rates) < fewest:
		return []string{fmt.Sprintf("it was measured over %d stretches of time, and %d are needed", len(rates), fewest)}
	}
	first, last := samples[0], samples[len(samples)-1]
	over := last.Time.Sub(first.Time)
	mean := (last.Used - first.Used).Seconds() / over.Seconds()
	nearly := percentile95(rates)
	var problems []string
	if c.Mean > 0 && mean > c.Mean {
		problems = append(problems, fmt.Sprintf("it took %.2f cores on average of %v, and at most %.2f are allowed", mean, over.Round(time.Second), c.Mean))
	}
	if c.NearlyAlways > 0 && nearly > c.NearlyAlways {
		problems = append(problems, fmt.Sprintf("it took %.2f cores in the 95th percentile of %d stretches, and at most %.2f are allowed", nearly, len(rates), c.NearlyAlways))
	}
	if mean < c.AtLeast {
		problems = append(problems, fmt.Sprintf("it took %.2f cores on average of %v, and without at least %.2f nothing is shown of a limit", mean, over.Round(time.Second), c.AtLeast))
	}
	return problems
}

// Rates returns how many cores were taken between each sample and the next, and why
// that cannot be said.
func Rates(samples []CPUSample) (rates []float64, why string) {
	for i := 1; i < len(samples); i++ {
		passed, used := samples[i].Time.Sub(samples[i-1].Time), samples[i].Used-samples[i-1].Used
		if passed <= 0 {
			return nil, "its samples are not in the order of time"
		}
		if used < 0 {
			return nil, fmt.Sprintf("its time on CPUs went from %v back to %v: it was started again", samples[i-1].Used, samples[i].Used)
		}
		rates = append(rates, used.Seconds()/passed.Seconds())
	}
	return rates, ""
}

// percentile95 returns the least of the rates that 95 of a hundred do not exceed.
func percentile95(rates []float64) float64 {
	sorted := slices.Sorted(slices.Values(rates))
	return sorted[(len(sorted)*95+99)/100-1]
}

// Taken is what came of taking memory in a container.
type Taken struct {
	Amount string // as it was asked for
	// Exit is the exit code of who asked for it. Killed says that the container was
	// killed for it, so that there is none.
	Exit   int
	Killed bool
	Said   string
}

// Memory returns what is other than that a container could take a little memory, and
// not much. None is none.
func Memory(little, much Taken, limit string) []string {
	var problems []string
	if little.Exit != 0 || little.Killed {
		problems = append(problems, fmt.Sprintf("taking %s failed under a limit of %s: %s", little.Amount, limit, little.how()))
	}
	if much.Exit == 0 && !much.Killed {
		problems = append(problems, fmt.Sprintf("taking %s succeeded under a limit of %s", much.Amount, limit))
	}
	return problems
}

func (t Taken) how() string {
	if t.Killed {
		return "the container was killed"
	}
	return fmt.Sprintf("exit code %d: %s", t.Exit, cut(t.Said))
}

// MemoryFigures returns which of the figures that a kubelet gives of a container, in
// bytes by name, are above its limit. None is none.
func MemoryFigures(figures map[string]uint64, limit resource.Quantity) []string {
	var problems []string
	for name, bytes := range figures {
		if bytes > uint64(limit.Value()) {
			problems = append(problems, fmt.Sprintf("the kubelet reports %s of %s under a limit of %s", name, resource.NewQuantity(int64(bytes), resource.BinarySI), limit.String()))
		}
	}
	slices.Sort(problems)
	return problems
}

// Unharmed returns what has become, since it was seen before, of a pod that had no part
// in what its neighbours took, and of its node. None is none.
func Unharmed(before, now *v1.Pod, node *v1.Node) []string {
	var problems []string
	if now.UID != before.UID || now.DeletionTimestamp != nil {
		problems = append(problems, fmt.Sprintf("pod %s beside it was replaced", now.Name))
	}
	if now.Status.Phase != v1.PodRunning {
		problems = append(problems, fmt.Sprintf("pod %s beside it is %s: %s %s", now.Name, now.Status.Phase, now.Status.Reason, now.Status.Message))
	}
	for _, c := range now.Status.ContainerStatuses {
		if c.RestartCount > 0 {
			problems = append(problems, fmt.Sprintf("container %s of pod %s beside it was restarted %d times", c.Name, now.Name, c.RestartCount))
		}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == v1.NodeMemoryPressure && c.Status != v1.ConditionFalse {
			problems = append(problems, fmt.Sprintf("node %s has %s %s: %s", node.Name, c.Type, c.Status, c.Message))
		}
	}
	return problems
}
