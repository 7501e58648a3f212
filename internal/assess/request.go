package assess

import (
	"fmt"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight"
)

// Request says what is assessed, and how. A field that is not said to be needed
// may be zero.
type Request struct {
	Planning

	// Kubeconfig and Context say which cluster; "" are kubectl's defaults.
	Kubeconfig, Context string
	// Cluster is the provider of a cluster to make for the run, and to remove
	// after it; "" takes the one that is there. See [Clusters].
	Cluster string
	// ClusterSet is what only that provider knows.
	ClusterSet map[string]string
	// KeepOnFailure, unless 0, is how long that cluster stays, to be looked at, where
	// a test failed or it could not be made.
	KeepOnFailure time.Duration
	// ReportDir is the folder for results, which a new run makes. Needed for one.
	ReportDir string
	// Resume is the report folder of a run to go on with. Such a run keeps its
	// plan, identity, declarations and settings; of those here, Change alone counts.
	Resume string
	// Change changes the settings of a run that goes on.
	Change func(*result.Settings)
	// Settings are those of a new run; Procs 0 fits the cluster, Steer "" is [SteerAuto].
	Settings result.Settings

	// RunID is the id that the shards of one run share; "" makes a new one.
	RunID string
	// Shard is which shard of the plan is run, from 1; 0 is 1.
	Shard int
	// Attempt counts the executions of the shard, from 1; 0 is 1.
	Attempt     int
	Declared    result.Declarations
	Source      result.Source
	ToolVersion string
	// ConformanceJUnit are files of a Linux conformance run.
	ConformanceJUnit []string

	// Preflight is what a run does that cannot work; "" is [PreflightRefuse].
	Preflight string
	// NoProbe leaves the probes out, which are pods of the preflight.
	NoProbe bool
	// ProbeLimit is how long all probes may take; 0 is the default of package
	// probe.
	ProbeLimit time.Duration
	// Found is given the findings of the preflight, as they are known.
	Found func(*preflight.Report) error

	// Prepull has nodes pull the images of tests before the first of them, for as
	// long as PrepullLimit; 0 is the default of package prepull.
	Prepull      bool
	PrepullLimit time.Duration

	// Wait waits while another run has the cluster.
	Wait bool
	// Observer is told how the tests go on; nil for nobody.
	Observer func(*result.Plan, *result.Manifest, []*result.PlannedTest) Observer
	// Kept is called when results were written because of Stop, before the tests
	// have cleaned up.
	Kept func(dir string) error

	// Stop, when it is closed, interrupts the tests gracefully.
	Stop <-chan struct{}
	// Deadline is when the run's time is over; zero for never.
	Deadline time.Time
	// StopWithin is how long the tests may take to stop; 0 for no limit.
	StopWithin time.Duration
	// Environ is the environment of e2e.test and of what makes clusters, as
	// "KEY=value"; it also says where a kubeconfig is.
	Environ []string
}

// Observer is a [run.Observer] that is closed when the tests are over.
type Observer interface {
	run.Observer
	Close()
}

// The ways of steering, in [result.Settings].
const (
	SteerAuto   = "auto"
	SteerPolicy = "policy"
	SteerCordon = "cordon"
	SteerOff    = "off"
)

// SteerWays are all of them.
func SteerWays() []string { return []string{SteerAuto, SteerPolicy, SteerCordon, SteerOff} }

// What a run does that cannot work on its cluster.
const (
	PreflightRefuse = "refuse"
	PreflightWarn   = "warn"
	PreflightOff    = "off" // nobody looks
)

func (r *Request) getenv(key string) string {
	for i := len(r.Environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(r.Environ[i], "="); ok && k == key {
			return v
		}
	}
	return ""
}

func (p *Planning) notef(format string, args ...any) {
	if p.Notes != nil {
		fmt.Fprintf(p.Notes, format+"\n", args...)
	}
}

func (p *Planning) note(text string) { p.notef("%s", text) }

// nobody observes nothing.
type nobody struct{}

func (nobody) Event(result.Event) {}
func (nobody) Note(string)        {}
func (nobody) Close()             {}
