// Package provider describes clusters that op-readiness makes itself, whoever
// makes them. Each provider is a package below: kwok first.
package provider

// State says whether a cluster can be used.
type State string

const (
	// Running says that its control plane answers and its nodes are ready.
	Running State = "running"
	// Starting says that another process is making it at this moment.
	Starting State = "starting"
	// Stopped says that none of its processes run, as after a reboot.
	Stopped State = "stopped"
	// Broken says that it is half made, or that a part of it is gone.
	Broken State = "broken"
)

// Cluster is one cluster that op-readiness has made.
type Cluster struct {
	Name              string `json:"name"`
	Provider          string `json:"provider"`
	KubernetesVersion string `json:"kubernetesVersion"`
	LinuxNodes        int    `json:"linuxNodes"`
	WindowsNodes      int    `json:"windowsNodes"`
	// WindowsVersion is such as ltsc2022.
	WindowsVersion string `json:"windowsVersion"`
	State          State  `json:"state"`
	// Problem says what is wrong in a state other than Running.
	Problem string `json:"problem,omitempty"`
	// Kubeconfig is a file whose context Context leads to the cluster.
	Kubeconfig string `json:"kubeconfig"`
	Context    string `json:"context"`
}
