package result

import (
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// ManifestSchema is the version of run.json's format that this package writes.
const ManifestSchema = 1

// Manifest is the content of run.json. It is written when a run starts and
// again when it ends.
type Manifest struct {
	Schema int `json:"schema"`
	// RunID is unique for each execution of a plan; its shards share it.
	RunID      string `json:"runID"`
	PlanDigest string `json:"planDigest"`
	// Shard is which shard of the plan this folder holds, from 1; 0 says that
	// the folder was merged from those of Shards.
	Shard int `json:"shard"`
	// Attempt counts executions of this shard of this run, from 1.
	Attempt     int    `json:"attempt"`
	ToolVersion string `json:"toolVersion"`
	// SpecDir is the folder of spec files that was planned with; "" where it was
	// the standard that comes with op-readiness.
	SpecDir    string `json:"specDir,omitempty"`
	E2EVersion string `json:"e2eVersion"`
	// SuiteHash is that of the sources of op-readiness.test; "" where no test of
	// it was planned.
	SuiteHash string       `json:"suiteHash,omitempty"`
	Cluster   Facts        `json:"cluster"`
	Declared  Declarations `json:"declared,omitzero"`
	// Settings are how the tests were run; a run that is resumed takes them over.
	Settings Settings `json:"settings,omitzero"`
	// Source says what was tested, and by which job.
	Source Source `json:"source,omitzero"`
	// Target says which cluster it was, so that the run can be resumed.
	Target Target `json:"target,omitzero"`
	// Kubectl is the kubectl that tests could run; "" where there was none.
	Kubectl string `json:"kubectl,omitempty"`
	// Locks are the members of the cluster lock that this shard's executions
	// were, oldest first.
	Locks []string `json:"locks,omitempty"`
	// Steering says how pods could be put where a case wants them; "" where
	// they could not.
	Steering string `json:"steering,omitempty"`
	// Pulls are the images that nodes were to pull before the tests.
	Pulls   []Pull    `json:"pulls,omitempty"`
	Started time.Time `json:"started"`
	// Finished is zero while the run goes on, and after it was killed.
	Finished    time.Time `json:"finished,omitzero"`
	Interrupted bool      `json:"interrupted,omitempty"`
	// OutOfTime says that the run's own time was up before all tests had a
	// result.
	OutOfTime bool `json:"outOfTime,omitempty"`
	// Scope, Verdict, Outcomes and ExitCode are what package verdict said at
	// the end. They are always computed anew; results that have become ready
	// since were changed.
	Scope    string         `json:"scope,omitempty"`
	Verdict  string         `json:"verdict,omitempty"`
	Outcomes map[string]int `json:"outcomes,omitempty"`
	ExitCode *int           `json:"exitCode,omitempty"`
	// Shards are the manifests of the newest attempt of each shard that was
	// merged, in the order of the shards; one whose Finished is zero was killed.
	Shards []Manifest `json:"shards,omitempty"`
	// Problems are what [Merge] found wrong with the folders it was given.
	Problems []string `json:"problems,omitempty"`
	// Runs are the runs that [Merge] combined, oldest first; none where the
	// folder is of one run.
	Runs []MergedRun `json:"runs,omitempty"`
	// Notes are what is to be known of the merge without changing the verdict.
	Notes []string `json:"notes,omitempty"`
}

// Reopen takes back what the manifest says of the end of a run, which is to go on.
func (m *Manifest) Reopen() {
	m.Finished, m.Interrupted, m.OutOfTime = time.Time{}, false, false
	m.Scope, m.Verdict, m.Outcomes, m.ExitCode = "", "", nil, nil
}

// MergedRun is one of several runs that were combined.
type MergedRun struct {
	RunID      string `json:"runID"`
	PlanDigest string `json:"planDigest"`
	// From is where its results folder was: the URL of a build, or a folder.
	From    string    `json:"from"`
	Source  Source    `json:"source,omitzero"`
	Started time.Time `json:"started"`
	// Cases is how many cases its results account for; 0 where newer runs
	// replaced all of them.
	Cases int `json:"cases"`
	// FirstShard is the shard of the combined plan that its first one became,
	// and Shards how many it became.
	FirstShard int `json:"firstShard"`
	Shards     int `json:"shards"`
}

// The CI systems that a run can tell.
const (
	Prow          = "prow"
	GitHubActions = "github-actions"
)

// Source is where a run comes from. Everything but System may be unknown, and
// is "" or 0 then; outside of a CI system everything is.
type Source struct {
	// System is [Prow] or [GitHubActions].
	System string `json:"system,omitempty"`
	// Repository is what was tested, as "owner/name", and Commit the hash of its
	// commit, for a pull request of its head.
	Repository string `json:"repository,omitempty"`
	Commit     string `json:"commit,omitempty"`
	// Pull is the number of the pull request; 0 for none.
	Pull int `json:"pull,omitempty"`
	// Job is the name of the job or workflow, and Build the id of its execution.
	Job   string `json:"job,omitempty"`
	Build string `json:"build,omitempty"`
	// URL is the page of the execution.
	URL string `json:"url,omitempty"`
}

// Target names a cluster without its secrets.
type Target struct {
	// Kubeconfig is the path of a file on the machine that ran the tests.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Context    string `json:"context,omitempty"`
	// Made is the cluster that the run made itself, as "kwok/name"; it is
	// removed when the run has ended.
	Made string `json:"made,omitempty"`
}

// Settings are how tests are run, without what selects them. None of them is a
// secret; files are named, not copied.
type Settings struct {
	// E2EBinary is the e2e.test that was named; "" is the one of the cache.
	E2EBinary string `json:"e2eBinary,omitempty"`
	Procs     int    `json:"procs,omitempty"`
	Retries   int    `json:"retries,omitempty"`
	Steer     string `json:"steer,omitempty"`
	// Unlocked says that the cluster lock was not taken.
	Unlocked             bool     `json:"unlocked,omitempty"`
	Kubectl              string   `json:"kubectl,omitempty"`
	NonBlockingTaints    []string `json:"nonBlockingTaints,omitempty"`
	AllowedNotReadyNodes int      `json:"allowedNotReadyNodes,omitempty"`
	DNSDomain            string   `json:"dnsDomain,omitempty"`
	DockerConfig         string   `json:"dockerConfig,omitempty"`
	RepoList             string   `json:"repoList,omitempty"`
	E2EArgs              []string `json:"e2eArgs,omitempty"`
	// SuiteBinary and SuiteArgs are for op-readiness.test what E2EBinary and
	// E2EArgs are for e2e.test.
	SuiteBinary string   `json:"suiteBinary,omitempty"`
	SuiteArgs   []string `json:"suiteArgs,omitempty"`
}

// Declarations are what the user says of the cluster.
type Declarations struct {
	// AirGapped says that the cluster has no way to the internet.
	AirGapped bool `json:"airGapped,omitempty"`
	// Without lists features that the cluster does not have.
	Without []string `json:"without,omitempty"`
	// Reboot allows tests to reboot nodes.
	Reboot bool `json:"reboot,omitempty"`
}

// Facts are what was read from the cluster's API before the tests ran.
type Facts struct {
	// ServerVersion is the API server's, such as "v1.36.3".
	ServerVersion string `json:"serverVersion"`
	Nodes         []Node `json:"nodes"`
	// APIGroups are the groups that the API server serves.
	APIGroups []string `json:"apiGroups,omitempty"`
	// Networks are those that their DaemonSets look like, such as "Calico": a
	// hint for people, on which nothing rests.
	Networks []string `json:"networks,omitempty"`
	// RuntimeClasses are the names of those that there are; nil where that is
	// not known.
	RuntimeClasses []string `json:"runtimeClasses,omitzero"`
}

// Node is one node of the cluster.
type Node struct {
	Name string   `json:"name"`
	OS   specs.OS `json:"os"`
	// Contradiction says how what the node reports about its operating system
	// does not fit together; OS is "" then.
	Contradiction string `json:"contradiction,omitempty"`
	// OSImage is what the kubelet reports, such as "Windows Server 2022 Datacenter".
	OSImage string `json:"osImage,omitempty"`
	// WindowsBuild is the label node.kubernetes.io/windows-build, such as "10.0.20348".
	WindowsBuild     string `json:"windowsBuild,omitempty"`
	KubeletVersion   string `json:"kubeletVersion,omitempty"`
	ContainerRuntime string `json:"containerRuntime,omitempty"`
	Architecture     string `json:"architecture,omitempty"`
	// Simulated says that no container ever runs on the node.
	Simulated bool `json:"simulated,omitempty"`
	Ready     bool `json:"ready"`
	// Unschedulable says that the node is cordoned.
	Unschedulable bool `json:"unschedulable,omitempty"`
	// Taints are those that keep pods away (NoSchedule, NoExecute), as "key=value:effect".
	Taints []string `json:"taints,omitempty"`
	// ControlPlane says that the node carries a control plane's label.
	ControlPlane bool `json:"controlPlane,omitempty"`
	// PodCIDRs are the node's ranges of pod addresses; "" where the network
	// does without.
	PodCIDRs []string `json:"podCIDRs,omitempty"`
}

// Schedulable reports whether the e2e framework would put a pod without
// tolerations on the node.
func (n *Node) Schedulable() bool {
	return n.Ready && !n.Unschedulable && len(n.Taints) == 0
}

// Count counts the nodes for which keep holds.
func (f *Facts) Count(keep func(*Node) bool) int {
	count := 0
	for i := range f.Nodes {
		if keep(&f.Nodes[i]) {
			count++
		}
	}
	return count
}
