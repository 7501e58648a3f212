package scripted

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Invented is the source of an answer that nobody has recorded.
const Invented = "invented"

// Answer is what a pod does.
type Answer struct {
	// Source is [Invented], or a link to where the answer was recorded.
	Source string
	// Log is what each of its containers says.
	Log string
	// Runs says that its containers do not end; otherwise they do, with the code Exit.
	Runs bool
	Exit int32
	// Commands is a script for sh that answers commands: it is run with the command
	// and its arguments, for the names of [Up].
	Commands string
}

// Script returns the answer of a pod, and false for a pod that gives none.
type Script func(pod *v1.Pod) (Answer, bool)

// check refuses an answer of which nobody says where it is from.
func (a Answer) check() error {
	if a.Source != Invented && !strings.HasPrefix(a.Source, "https://") {
		return fmt.Errorf("an answer has the source %q: say %q, or give a link", a.Source, Invented)
	}
	return nil
}

// criLog returns a log as container runtimes write it to a file:
// https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md
func criLog(text string, at time.Time) string {
	var file strings.Builder
	for line := range strings.Lines(text) {
		said, whole := strings.CutSuffix(line, "\n")
		tag := "P" // a part of a line
		if whole {
			tag = "F"
		}
		fmt.Fprintf(&file, "%s stdout %s %s\n", at.UTC().Format(time.RFC3339Nano), tag, said)
	}
	return file.String()
}

// ended returns the status of a pod whose containers have ended.
func (a Answer) ended(pod *v1.Pod, at time.Time) *v1.PodStatus {
	status := pod.Status.DeepCopy()
	status.Phase = v1.PodSucceeded
	reason := "Completed"
	if a.Exit != 0 {
		status.Phase, reason = v1.PodFailed, "Error"
	}
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == v1.PodReady || c.Type == v1.ContainersReady {
			c.Status, c.Reason = v1.ConditionFalse, cmp.Or(map[v1.PodPhase]string{v1.PodSucceeded: "PodCompleted"}[status.Phase], "PodFailed")
		}
	}
	for i := range status.ContainerStatuses {
		c := &status.ContainerStatuses[i]
		terminated := &v1.ContainerStateTerminated{ExitCode: a.Exit, Reason: reason}
		terminated.FinishedAt.Time = at
		if c.State.Running != nil {
			terminated.StartedAt = c.State.Running.StartedAt
		}
		c.Ready, c.Started, c.State = false, new(false), v1.ContainerState{Terminated: terminated}
	}
	return status
}
