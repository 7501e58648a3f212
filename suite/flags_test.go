package suite

import (
	"context"
	"flag"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
)

// options are the flags that begin with --readiness.
var options settings

type settings struct {
	targetOS   string
	shorten    float64
	waitAtMost time.Duration
}

func (s *settings) register(flags *flag.FlagSet) {
	flags.StringVar(&s.targetOS, "readiness.target-os", string(v1.Windows),
		"The operating system under test, windows or linux. With linux, nothing is shown about Windows: it is for working on the tests.")
	flags.Float64Var(&s.shorten, "readiness.shorten", 1,
		"Divide by this, from 1 to 100, for how long tests observe. Refused where a Windows node is real.")
	flags.DurationVar(&s.waitAtMost, "readiness.wait-at-most", 0,
		"Wait at most this long for anything, such as 30s; 0 is as long as each test says.")
}

func (s *settings) check() error {
	if s.targetOS != string(v1.Windows) && s.targetOS != string(v1.Linux) {
		return fmt.Errorf("--readiness.target-os=%q: use windows or linux", s.targetOS)
	}
	if !(s.shorten >= 1 && s.shorten <= 100) {
		return fmt.Errorf("--readiness.shorten=%v: use a number from 1 to 100", s.shorten)
	}
	if s.waitAtMost < 0 {
		return fmt.Errorf("--readiness.wait-at-most=%v: use a duration such as 30s, or 0", s.waitAtMost)
	}
	return nil
}

// simulated is the annotation by which kwok takes a node for its own.
const simulated = "kwok.x-k8s.io/node"

// checkAgainst refuses what would make a pass on the cluster mean less than it says.
func (s *settings) checkAgainst(ctx context.Context, client clientset.Interface) error {
	if s.shorten == 1 {
		return nil
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: v1.LabelOSStable + "=" + string(v1.Windows)})
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		if nodes.Items[i].Annotations[simulated] == "" {
			return fmt.Errorf("--readiness.shorten=%v: node %s is a real Windows node, and is observed for as long as the tests say: leave the flag out", s.shorten, nodes.Items[i].Name)
		}
	}
	return nil
}

// long returns for how long something is observed, or how often it happens, where a
// test says d.
func long(d time.Duration) time.Duration {
	return time.Duration(float64(d) / options.shorten)
}

// within returns how long something may take where a test says d.
func within(d time.Duration) time.Duration {
	if options.waitAtMost > 0 {
		return min(d, options.waitAtMost)
	}
	return d
}
