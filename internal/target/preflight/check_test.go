package preflight

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/lease"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight/probe"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func standard(t *testing.T) []specs.Case {
	t.Helper()
	set, err := specs.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	cases, err := set.For("1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func value[T any](v T) Read[T] { return Read[T]{Value: v} }

func node(name string, os specs.OS) Node {
	n := Node{Node: result.Node{
		Name: name, OS: os, Ready: true, KubeletVersion: "v1.36.3", ContainerRuntime: "containerd://2.1.4", PodCIDRs: []string{"10.0.0.0/24"},
	}, Capacity: 16 << 30, Allocatable: 14 << 30}
	if os == specs.Windows {
		n.WindowsBuild = "10.0.20348"
	}
	return n
}

// goodCluster has nothing failing.
func goodCluster(t *testing.T) *Facts {
	return &Facts{
		Version:   value("v1.36.3"),
		Nodes:     value([]Node{node("linux-1", specs.Linux), node("linux-2", specs.Linux), node("windows-1", specs.Windows), node("windows-2", specs.Windows)}),
		APIGroups: value([]string{"apps"}),
		DaemonSets: value([]DaemonSet{
			{Namespace: "calico-system", Name: "calico-node", Images: []string{"docker.io/calico/node:v3.30.0"}},
			{Namespace: "calico-system", Name: "calico-node-windows"},
			{Namespace: "kube-system", Name: "kube-proxy", Images: []string{"registry.k8s.io/kube-proxy:v1.36.3"}},
			{Namespace: "kube-system", Name: "kube-proxy-windows", Images: []string{"example.com/kube-proxy:v1.35.0-calico-hostprocess"}},
		}),
		GMSAWebhooks:   value([]string{}),
		RuntimeClasses: value(map[string]string{"runhcs-wcow-process": "runhcs-wcow-process"}),
		Families:       value([]string{"IPv4"}),
		DNS:            value(DNS{Service: true, Ready: 2}),
		Missing:        value([]Need{}),
		Steering:       value("MutatingAdmissionPolicy v1"),
		Namespaces:     value([]string{}),
		Policies:       value([]string{}),
		Now:            time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Kubectl:        "/usr/bin/kubectl",
		Provider:       "skeleton",
		Standard:       standard(t),
		Catalogues:     specs.Catalogues(),
	}
}

func finding(findings []Finding, id string) *Finding {
	i := slices.IndexFunc(findings, func(f Finding) bool { return f.ID == id })
	if i < 0 {
		return &Finding{}
	}
	return &findings[i]
}

// eachNode changes the nodes of a system.
func eachNode(os specs.OS, change func(*Node)) func(*Facts) {
	return func(f *Facts) {
		for i := range f.Nodes.Value {
			if f.Nodes.Value[i].OS == os {
				change(&f.Nodes.Value[i])
			}
		}
	}
}

func TestCheck(t *testing.T) {
	refused := errors.New("nodes is forbidden")
	windows := func(change func(*Node)) func(*Facts) { return eachNode(specs.Windows, change) }
	without := func(names ...string) func(*Facts) {
		return func(f *Facts) { f.Declared.Without = names }
	}
	for _, tt := range []struct {
		name   string
		change func(*Facts)
		id     string
		status Status
		found  string
		fix    string
	}{
		{"a version whose tests are known", nil, "server-version", OK, "Kubernetes v1.36.3, whose list of tests is checked", ""},
		{"another patch of a known version", func(f *Facts) { f.Version = value("v1.36.9-gke.1") }, "server-version", OK, "a list of tests of 1.36 is checked", ""},
		{"a version whose tests are not known", func(f *Facts) { f.Version = value("v1.40.0") }, "server-version", Warning, "checked against the tests of v1.33.13, v1.34.4, v1.35.4, v1.36.3 only", "specs lint --test-list"},
		{"a version that cannot be read", func(f *Facts) { f.Version = Read[string]{Err: refused} }, "server-version", Unknown, "forbidden", "--print-rbac"},

		{"two nodes of each", nil, "node-count", OK, "2 of 2 Linux nodes can be scheduled to; 2 of 2 Windows nodes", ""},
		{"simulated nodes do not count", windows(func(n *Node) { n.Simulated = true }), "node-count", Failing, "2 simulated Windows nodes, which do not count", "add, or untaint, 2 Windows"},
		{"one node of a pair is simulated", windows(func(n *Node) { n.Simulated = n.Name == "windows-1" }), "node-count", Failing, "1 of 1 Windows nodes can be scheduled to (and 1 simulated, which do not count)", "1 Windows"},
		{"no Windows node", func(f *Facts) { f.Nodes.Value = f.Nodes.Value[:2] }, "node-count", Failing, "no Windows node", "2 Windows"},
		{"a cordoned node", windows(func(n *Node) { n.Unschedulable = n.Name == "windows-1" }), "node-count", Failing, "1 of 2 Windows nodes", "1 Windows"},
		{"nodes that cannot be read are not absent", func(f *Facts) { f.Nodes = Read[[]Node]{Err: refused} }, "node-count", Unknown, "not known: nodes is forbidden", "--print-rbac"},
		{"tainted Windows nodes", windows(func(n *Node) { n.Taints = []string{"os=windows:NoSchedule"} }), "windows-nodes", Failing, "tests can use 0 Windows nodes", "take the taints off"},
		{"taints are named", windows(func(n *Node) { n.Taints = []string{"os=windows:NoSchedule"} }), "node-taints", Warning, "os=windows:NoSchedule on windows-1, windows-2", "--non-blocking-taints os"},
		{"taints by which Kubernetes says that a node is unwell", windows(func(n *Node) { n.Taints = []string{"node.kubernetes.io/not-ready:NoSchedule"} }), "node-taints", Warning, "not-ready", "take the taints off"},
		{"a control plane's taint", eachNode(specs.Linux, func(n *Node) { n.Taints = []string{"node-role.kubernetes.io/control-plane:NoSchedule"} }), "node-taints", OK, "but for control planes", ""},
		{"only control planes run Linux", eachNode(specs.Linux, func(n *Node) { n.ControlPlane = true }), "linux-worker", Failing, "0 Linux workers", "add a Linux worker"},
		{"a node that is not ready", windows(func(n *Node) { n.Ready = n.Name == "windows-1" }), "node-ready", Warning, "not ready: windows-2", "--allowed-not-ready-nodes 1"},
		{"no Windows node refuses a run", func(f *Facts) { f.Nodes.Value = f.Nodes.Value[:2] }, "windows-nodes", Failing, "the cluster has no Windows node", "add 2 Windows nodes"},
		{"nodes that agree with their labels", nil, "node-os", OK, "agree", ""},
		{"a node of no system", func(f *Facts) { f.Nodes.Value[0].OS = "" }, "node-os", Failing, `linux-1 is of the system ""`, "find out what"},
		{"a node that lies about its system", func(f *Facts) {
			f.Nodes.Value[2].OS, f.Nodes.Value[2].Contradiction = "", "reports linux, and is labelled windows"
		}, "node-os", Failing, "windows-1 reports linux, and is labelled windows", "not taken for proof"},

		{"a known release of Windows", nil, "windows-version", OK, "2 with 10.0.20348 (Windows Server 2022)", ""},
		{"an unknown release of Windows", windows(func(n *Node) { n.WindowsBuild = "10.0.14393" }), "windows-version", Failing, "windows-1 10.0.14393, windows-2 10.0.14393", "these releases of Windows Server"},
		{"a release that the standard does not name", windows(func(n *Node) { n.WindowsBuild = "10.0.26100" }), "windows-version", OK, "2 with 10.0.26100 (Windows Server 2025): the standard names 2019 and 2022; 2025 is accepted because", ""},
		{"Windows nodes without a build", windows(func(n *Node) { n.WindowsBuild = "" }), "windows-version", Unknown, "without the label: windows-1, windows-2", "kubelet"},
		{"2022 on 1.36", nil, "windows-version-supported", OK, "Kubernetes 1.36 documents Windows Server 2022 and 2025", ""},
		{"2019 on 1.36", windows(func(n *Node) { n.WindowsBuild = "10.0.17763" }), "windows-version-supported", Warning, "the cluster has 2019", "https://kubernetes.io/docs/concepts/windows/intro/"},
		{"a version that is too old", func(f *Facts) { f.Version = value("v1.32.1") }, "server-version", Failing, "checked against the tests of", "upgrade the cluster"},
		{"2019 on 1.34", func(f *Facts) {
			f.Version = value("v1.34.4")
			windows(func(n *Node) { n.WindowsBuild = "10.0.17763" })(f)
		}, "windows-version-supported", OK, "Kubernetes 1.34 documents Windows Server 2019 and 2022", ""},
		{"2025 on 1.34", func(f *Facts) {
			f.Version = value("v1.34.4")
			windows(func(n *Node) { n.WindowsBuild = "10.0.26100" })(f)
		}, "windows-version-supported", Warning, "the cluster has 2025", "documented pair"},

		{"kubelets of the server's version", nil, "kubelet-skew", OK, "1.36 with a server 1.36", ""},
		{"kubelets three minor versions older", windows(func(n *Node) { n.KubeletVersion = "v1.33.0" }), "kubelet-skew", OK, "1.33, 1.36 with a server 1.36", ""},
		{"kubelets four minor versions older", windows(func(n *Node) { n.KubeletVersion = "v1.32.9" }), "kubelet-skew", Warning, "windows-1 v1.32.9, windows-2 v1.32.9", "version-skew-policy"},
		{"kubelets newer than the server", windows(func(n *Node) { n.KubeletVersion = "v1.37.0" }), "kubelet-skew", Warning, "v1.37.0", "never newer"},
		{"kubelets that say nothing", windows(func(n *Node) { n.KubeletVersion = "" }), "kubelet-skew", Unknown, "windows-1, windows-2", ""},
		{"kube-proxies by their images", nil, "kube-proxy-skew", OK, "kube-proxy v1.36.3, kube-proxy-windows v1.35.0 with a server 1.36", ""},
		{"a kube-proxy that is newer", func(f *Facts) { f.Version = value("v1.35.4") }, "kube-proxy-skew", Warning, "kube-proxy v1.36.3", "upgrade"},
		{"no kube-proxy to be seen", func(f *Facts) { f.DaemonSets = value([]DaemonSet{}) }, "kube-proxy-skew", Unknown, "no DaemonSet kube-proxy shows", ""},

		{"containerd", nil, "container-runtime", OK, "Linux: containerd://2.1.4, Windows: containerd://2.1.4", ""},
		{"another runtime", windows(func(n *Node) { n.ContainerRuntime = "docker://25.0.0" }), "container-runtime", Warning, "not containerd on windows-1, windows-2", "HostProcess"},
		{"memory kept back", nil, "windows-memory", OK, "2048 MiB kept back on each Windows node", ""},
		{"memory kept back, differently", windows(func(n *Node) {
			if n.Name == "windows-1" {
				n.Allocatable = 15 << 30
			}
		}), "windows-memory", OK, "1024 to 2048 MiB", ""},
		{"no memory kept back", windows(func(n *Node) { n.Allocatable = n.Capacity }), "windows-memory", Warning, "on windows-1, windows-2", "it pages"},
		{"memory that nodes do not tell", windows(func(n *Node) { n.Capacity = 0 }), "windows-memory", Unknown, "do not say", ""},

		{"DNS", nil, "cluster-dns", OK, "2 endpoints are ready", ""},
		{"no DNS", func(f *Facts) { f.DNS = value(DNS{}) }, "cluster-dns", Failing, "no such Service", "CoreDNS"},
		{"DNS without endpoints", func(f *Facts) { f.DNS = value(DNS{Service: true}) }, "cluster-dns", Failing, "no endpoint that is ready", "kubectl -n kube-system get pods"},
		{"DNS that cannot be read is not absent", func(f *Facts) { f.DNS = Read[DNS]{Err: refused} }, "cluster-dns", Unknown, "not known", "--print-rbac"},
		{"DNS declared absent still keeps tests from running", without("dns"), "cluster-dns", Failing, "declared absent (--without dns)", "install"},
		{"the internet", nil, "internet", Unknown, "only pods can tell", "preflight --probe"},
		{"an air gap that is not a probe's", func(f *Facts) { f.Declared.AirGapped, f.Probes.Made = true, true }, "internet", OK, "declared absent (--air-gapped)", ""},
		{"an air gap", func(f *Facts) { f.Declared.AirGapped = true }, "internet", OK, "declared absent (--air-gapped)", ""},
		{"single-stack", nil, "dual-stack", OK, "single-stack (IPv4)", ""},
		{"dual-stack", func(f *Facts) {
			for i := range f.Nodes.Value {
				f.Nodes.Value[i].PodCIDRs = []string{"10.0.0.0/24", "fd00::/64"}
			}
		}, "dual-stack", OK, "dual-stack: every node", ""},
		{"dual-stack on Linux only", eachNode(specs.Linux, func(n *Node) { n.PodCIDRs = []string{"10.0.0.0/24", "fd00::/64"} }), "dual-stack", Warning, "2 of 4 nodes", "give every node both families"},
		{"no pod CIDRs say nothing", func(f *Facts) {
			for i := range f.Nodes.Value {
				f.Nodes.Value[i].PodCIDRs = nil
			}
		}, "dual-stack", Unknown, "in its own way", "--without dual-stack"},
		{"a declaration against the facts", func(f *Facts) {
			f.Declared.Without = []string{"dual-stack"}
			eachNode(specs.Linux, func(n *Node) { n.PodCIDRs = []string{"10.0.0.0/24", "fd00::/64"} })(f)
		}, "dual-stack", Failing, "declared absent (--without dual-stack), but pod CIDRs of two families are on 2 nodes", "leave --without dual-stack out"},
		{"a network that can enforce policies is a hint", nil, "network-policy", Unknown, "it looks like Calico (calico-system/calico-node), Calico (calico-system/calico-node-windows), which can", ""},
		{"a network that cannot", func(f *Facts) {
			f.DaemonSets = value([]DaemonSet{{Namespace: "kube-flannel", Name: "kube-flannel-ds"}})
		}, "network-policy", Warning, "Flannel (kube-flannel/kube-flannel-ds), which does not", "--without netpol"},
		{"a network that is not known", func(f *Facts) { f.DaemonSets = value([]DaemonSet{}) }, "network-policy", Unknown, "no network was recognised", "--without netpol"},
		{"a network that cannot be read", func(f *Facts) { f.DaemonSets = Read[[]DaemonSet]{Err: refused} }, "network-policy", Unknown, "forbidden", ""},
		{"a network without policies, declared", without("netpol"), "network-policy", OK, "declared absent (--without netpol)", ""},

		{"no gMSA", nil, "gmsa", OK, "not served: gMSA is not installed, and not asked", ""},
		{"groups that cannot be read do not make gMSA absent", func(f *Facts) { f.APIGroups = Read[[]string]{Err: refused} }, "gmsa", Unknown, "not known", ""},
		{"gMSA", func(f *Facts) { f.APIGroups = value([]string{"windows.k8s.io"}) }, "gmsa", OK, "so gMSA is asked", ""},
		{"gMSA without its webhook", func(f *Facts) { f.APIGroups = value([]string{"windows.k8s.io"}) }, "gmsa-webhook", Warning, "none", "windows-gmsa"},
		{"gMSA without its node", func(f *Facts) { f.APIGroups = value([]string{"windows.k8s.io"}) }, "gmsa-node", Warning, "0 nodes have the label agentpool=windowsgmsa", "kubectl label node"},
		{"gMSA with its node", func(f *Facts) {
			f.APIGroups = value([]string{"windows.k8s.io"})
			f.Nodes.Value[2].GMSA = true
		}, "gmsa-node", OK, "windows-1", ""},
		{"gMSA declared absent, but served", func(f *Facts) {
			f.Declared.Without, f.APIGroups = []string{"gmsa"}, value([]string{"windows.k8s.io"})
		}, "gmsa", Warning, "but windows.k8s.io is served", "leave --without gmsa out"},
		{"HostProcess", nil, "host-process", OK, "containerd 1.7 or newer on both Windows nodes", ""},
		{"HostProcess with an old containerd", windows(func(n *Node) { n.ContainerRuntime = "containerd://1.6.36" }), "host-process", Warning, "older than 1.7 on windows-1, windows-2", "upgrade containerd"},
		{"HostProcess without containerd", windows(func(n *Node) { n.ContainerRuntime = "docker://25.0.0" }), "host-process", OK, "not asked", ""},
		{"a runtime that is not known is not another one", windows(func(n *Node) { n.ContainerRuntime = "" }), "host-process", Warning, "not known, on windows-1, windows-2", "containerd"},
		{"runtime classes", nil, "runtime-classes", OK, "runhcs-wcow-process (runhcs-wcow-process)", ""},
		{"no runtime classes", func(f *Facts) { f.RuntimeClasses = value(map[string]string{"gvisor": "runsc"}) }, "runtime-classes", OK, "none for runhcs-wcow-process", ""},

		{"everything allowed", nil, "permission-suite", OK, "allowed", ""},
		{"missing permissions are named", func(f *Facts) {
			f.Missing = value([]Need{
				{"", "pods/exec", "create", ForSuite},
				{"apps", "deployments", "create", ForSuite},
				{"apps", "deployments", "delete", ForSuite},
				{"", "pods", "watch", ForEvidence},
			})
		}, "permission-suite", Failing, "3 permissions are missing for what the standard's tests do: create pods/exec, create/delete deployments.apps", "--print-rbac"},
		{"missing permissions of the evidence", func(f *Facts) { f.Missing = value([]Need{{"", "pods", "watch", ForEvidence}}) }, "permission-evidence", Failing, "no placement is proven: watch pods", "--print-rbac"},
		{"missing permissions of additional tests", func(f *Facts) { f.Missing = value([]Need{{"policy", "poddisruptionbudgets", "create", ForAdditional}}) }, "permission-additional", Warning, "create poddisruptionbudgets.policy", "--print-rbac"},
		{"permissions that cannot be asked for", func(f *Facts) { f.Missing = Read[[]Need]{Err: refused} }, "permission-cleanup", Unknown, "not known", ""},
		{"steering", nil, "steering", OK, "MutatingAdmissionPolicy v1 is served", ""},
		{"no steering", func(f *Facts) { f.Steering = value("") }, "steering", Failing, "not served", "--runtime-config"},
		{"steering that cannot be found out", func(f *Facts) { f.Steering = Read[string]{Err: refused} }, "steering", Unknown, "not known", ""},
		{"a runtime class that is not there", func(f *Facts) { f.RuntimeClass = "nope" }, "runtime-class", Failing, `no runtime class "nope"; there are: runhcs-wcow-process`, "--runtime-class"},
		{"a runtime class that is there", func(f *Facts) { f.RuntimeClass = "runhcs-wcow-process" }, "runtime-class", OK, "there is one", ""},
		{"many missing permissions", func(f *Facts) { f.Missing = value(allNeeds()) }, "permission-suite", Failing, "such as create/delete", "--print-rbac"},
		{"no kubectl", func(f *Facts) { f.Kubectl = "" }, "kubectl", Failing, "none on the path", "--kubectl"},
		{"the provider local", func(f *Facts) { f.Provider = "local" }, "provider", Warning, "SSH", "skeleton"},
		{"left-over namespaces", func(f *Facts) { f.Namespaces = value([]string{"a", "b", "c", "d", "e", "f", "g"}) }, "leftover-namespaces", Warning, "7: a, b, c, d, e, … and 2 more", "kubectl delete namespace -l e2e-run"},
		{"nobody has the cluster", nil, "cluster-lock", OK, "nobody", ""},
		{"another run has the cluster", func(f *Facts) { f.Held = value(held("other", f.Now)) }, "cluster-lock", Warning, "the cluster is locked by run other, shard 1/1 on ci-7", "run --wait"},
		{"a dead run has the cluster", func(f *Facts) { f.Held = value(held("other", f.Now.Add(-time.Hour))) }, "cluster-lock", Warning, "may be dead", "waits for the lock of a dead one"},
		{"the run's own lock", func(f *Facts) { f.Held, f.RunID = value(held("mine", f.Now)), "mine" }, "cluster-lock", OK, "this run has the cluster", ""},
		{"a lock of a newer version", func(f *Facts) {
			f.Held = value(&lease.HeldError{Unreadable: errors.New("a newer version of op-readiness wrote it")})
		}, "cluster-lock", Warning, "newer version", "wait"},
		{"steering by cordon", func(f *Facts) { f.Steering, f.Steer = value(""), "cordon" }, "steering", OK, "by cordoning nodes", ""},
		{"steering switched off", func(f *Facts) { f.Steer = "off" }, "steering", Failing, "switched off", "leave --steer=off out"},
		{"nodes that a killed run has cordoned", windows(func(n *Node) { n.CordonedByRun = n.Name == "windows-2" }), "leftover-cordon", Warning, "1: windows-2", "restores"},
		{"left-over probes", func(f *Facts) { f.ProbeNamespaces = value([]string{"op-readiness-probe-x"}) }, "leftover-probes", Warning, "op-readiness-probe-x", "kubectl delete namespace -l op-readiness/probe"},
		{"left-over policies", func(f *Facts) { f.Policies = value([]string{"mutatingadmissionpolicies/x"}) }, "leftover-steering", Warning, "1: mutatingadmissionpolicies/x", "the next run removes"},
		{"other means declared absent", without("exec"), "without-exec", Failing, "is not tested", "leave --without exec out"},
		{"a feature declared absent", without("gpu"), "without-gpu", OK, "declared absent (--without gpu)", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			facts := goodCluster(t)
			if tt.change != nil {
				tt.change(facts)
			}
			findings := Check(facts)
			f := finding(findings, tt.id)
			if f.Status != tt.status || !strings.Contains(f.Found, tt.found) || !strings.Contains(f.Fix, tt.fix) {
				t.Errorf("got %+v, want %s, %q, fix %q", *f, tt.status, tt.found, tt.fix)
			}
			ids := map[string]bool{}
			for _, f := range findings {
				if f.Found == "" || f.How == "" || f.Group == "" || f.Status == "" || (f.Status == Failing || f.Status == Warning) && f.Fix == "" || ids[f.ID] {
					t.Errorf("incomplete, or there twice: %+v", f)
				}
				ids[f.ID] = true
				for _, name := range f.Concerns {
					_, capability := specs.LookupCapability(name)
					if !capability && !slices.ContainsFunc(facts.Standard, func(c specs.Case) bool { return c.ID == name }) {
						t.Errorf("%s concerns %s, which is neither a capability nor a case", f.ID, name)
					}
				}
			}
		})
	}
}

func TestNothingThatCouldNotBeReadIsAbsentOrFine(t *testing.T) {
	err := errors.New("the server is on fire")
	facts := goodCluster(t)
	facts.Version, facts.Nodes, facts.APIGroups = Read[string]{Err: err}, Read[[]Node]{Err: err}, Read[[]string]{Err: err}
	facts.DaemonSets, facts.GMSAWebhooks, facts.RuntimeClasses = Read[[]DaemonSet]{Err: err}, Read[[]string]{Err: err}, Read[map[string]string]{Err: err}
	facts.Families, facts.DNS, facts.Missing, facts.Steering = Read[[]string]{Err: err}, Read[DNS]{Err: err}, Read[[]Need]{Err: err}, Read[string]{Err: err}
	facts.Namespaces, facts.Policies, facts.ProbeNamespaces = Read[[]string]{Err: err}, Read[[]string]{Err: err}, Read[[]string]{Err: err}
	facts.Held, facts.Probes = Read[*lease.HeldError]{Err: err}, Probes{Made: true, Err: err}
	findings := Check(facts)
	for _, f := range findings {
		if f.ID != "kubectl" && f.ID != "provider" && f.Status != Unknown {
			t.Errorf("%+v", f)
		}
	}
	if r := NewReport("https://cluster", findings); r.Testable || r.ExitCode != 3 {
		t.Errorf("a cluster of which nothing is known is testable: exit code %d", r.ExitCode)
	}
}

// held is the lock as a run's shard has it.
func held(run string, renewed time.Time) *lease.HeldError {
	return &lease.HeldError{
		Holder: lease.Holder{RunID: run, Shard: "1/1", Host: "ci-7"}, Group: lease.Group{Phase: specs.Parallel},
		Since: renewed, Renewed: renewed, Expiry: time.Minute,
	}
}

// probed are results of a kind on Linux, and on Windows.
func probed(kind probe.Kind, linux, windows probe.State) Probes {
	result := func(os specs.OS, build string, state probe.State) probe.Result {
		return probe.Result{Kind: kind, State: state, Target: probe.Target{OS: os, Build: build}, Node: string(os) + "-1", Found: map[probe.State]string{probe.Failed: "TIMEOUT (exit code 1)", probe.Unknown: "time is up"}[state]}
	}
	return Probes{Made: true, Results: []probe.Result{result(specs.Linux, "", linux), result(specs.Windows, "10.0.20348", windows)}}
}

func TestWhatPodsFoundOut(t *testing.T) {
	for _, tt := range []struct {
		name, id       string
		kind           probe.Kind
		linux, windows probe.State
		status         Status
		found          string
	}{
		{"DNS answers", "dns-answers", probe.DNS, probe.OK, probe.OK, OK, "Linux (linux-1): ok; Windows Server 2022 (windows-1): ok"},
		{"DNS does not answer on Windows", "dns-answers", probe.DNS, probe.OK, probe.Failed, Failing, "Windows Server 2022 (windows-1): failed: TIMEOUT"},
		{"DNS may not answer", "dns-answers", probe.DNS, probe.OK, probe.Unknown, Unknown, "Windows Server 2022 (windows-1): unknown: time is up"},
		{"the internet", "internet", probe.Internet, probe.OK, probe.OK, OK, "Linux (linux-1): ok"},
		{"no internet, which is not an air gap", "internet", probe.Internet, probe.Failed, probe.Failed, Failing, "Linux (linux-1): failed: TIMEOUT"},
		{"policies", "network-policy", probe.NetworkPolicy, probe.OK, probe.OK, OK, "Windows Server 2022 (windows-1): ok"},
		{"no policies, which is not a network without them", "network-policy", probe.NetworkPolicy, probe.OK, probe.Failed, Failing, "failed"},
		{"images", "test-images", probe.TestImages, probe.OK, probe.OK, OK, "ok"},
		{"no images on Windows", "test-images", probe.TestImages, probe.OK, probe.Failed, Failing, "failed"},
		{"no HostProcess containers, which is not a cluster without them", "host-process-pod", probe.HostProcess, probe.OK, probe.Failed, Failing, "failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			facts := goodCluster(t)
			facts.Probes = probed(tt.kind, tt.linux, tt.windows)
			f := finding(Check(facts), tt.id)
			if f.Status != tt.status || f.How != ByPods || !strings.Contains(f.Found, tt.found) || f.Status == Failing && f.Fix == "" {
				t.Errorf("got %+v", f)
			}
			if refuses := tt.id == "test-images" && tt.windows == probe.Failed; f.Refuses != refuses {
				t.Errorf("refuses a run: %t", f.Refuses)
			}
			// Whatever they found: what the verdict rests on is the same.
			with, without := *facts, *goodCluster(t)
			a, errA := with.ForRun()
			b, errB := without.ForRun()
			if errA != nil || errB != nil || !reflect.DeepEqual(a, b) {
				t.Errorf("the verdict would rest on a probe: %+v (%v), without %+v (%v)", a, errA, b, errB)
			}
		})
	}
	t.Run("tests that pull with credentials can do more", func(t *testing.T) {
		facts := goodCluster(t)
		facts.Probes = probed(probe.TestImages, probe.Failed, probe.Failed)
		facts.Probes.Credentials = true
		if f := finding(Check(facts), "test-images"); f.Refuses || f.Status != Failing {
			t.Errorf("got %+v", f)
		}
	})
	t.Run("nothing is fine on simulated nodes", func(t *testing.T) {
		facts := goodCluster(t)
		eachNode(specs.Windows, func(n *Node) { n.Simulated = true })(facts)
		facts.Probes = Probes{Made: true, Results: probed(probe.DNS, probe.OK, probe.OK).Results[:1]}
		for _, id := range []string{"dns-answers", "test-images"} {
			if f := finding(Check(facts), id); f.Status != Unknown || !strings.Contains(f.Found, "both Windows nodes are simulated: not probed there") {
				t.Errorf("got %+v", f)
			}
		}
		eachNode(specs.Linux, func(n *Node) { n.Simulated = true })(facts)
		if targets := facts.ProbeTargets(); len(targets) != 0 {
			t.Errorf("simulated nodes are probed: %+v", targets)
		}
	})
}

func TestTestableIsWhatHasNothingFailing(t *testing.T) {
	facts := goodCluster(t)
	if r := NewReport("https://cluster", Check(facts)); !r.Testable || r.ExitCode != 0 || r.Counts[Failing] != 0 {
		t.Errorf("got %s, exit code %d", r.Line(), r.ExitCode)
	}
	if refusing := NewReport("https://cluster", Check(facts)).Refusing(); len(refusing) > 0 {
		t.Errorf("a run is refused for %+v", refusing)
	}
	facts.Kubectl = ""
	if r := NewReport("https://cluster", Check(facts)); r.Testable || r.ExitCode != 3 || r.Counts[Failing] != 1 {
		t.Errorf("got %s, exit code %d", r.Line(), r.ExitCode)
	}
}

func TestFindingsNameTheRequirementsThatWait(t *testing.T) {
	facts := goodCluster(t)
	facts.Steering = value("")
	f := finding(Check(facts), "steering")
	for _, id := range []string{"core-network-service-ip-win-to-linux", "core-storage-service-account-rotation"} {
		if !slices.Contains(f.Requirements, id) {
			t.Errorf("%s is not in %v", id, f.Requirements)
		}
	}
}

func TestSecretsAndControlCharactersDoNotGetThrough(t *testing.T) {
	facts := goodCluster(t)
	facts.DNS = Read[DNS]{Err: errors.New("asked with Authorization: Bearer abcdefghijklmnopqrstuvwxyz\nand \x1b[31mfailed")}
	found := finding(Check(facts), "cluster-dns").Found
	if strings.Contains(found, "abcdefghij") || strings.ContainsAny(found, "\n\x1b") {
		t.Errorf("got %q", found)
	}
}

// troubledCluster has findings of every status.
func troubledCluster(t *testing.T) *Facts {
	f := goodCluster(t)
	f.Nodes.Value[0].ControlPlane = true
	f.Nodes.Value[0].Taints = []string{"node-role.kubernetes.io/control-plane:NoSchedule"}
	f.Nodes.Value[3].Taints = []string{"os=windows:NoSchedule"}
	f.Nodes.Value[3].WindowsBuild = "10.0.17763"
	f.Nodes.Value[2].ContainerRuntime = "containerd://1.6.36"
	f.Nodes.Value = append(f.Nodes.Value, Node{Node: result.Node{Name: "windows-3", OS: specs.Windows, Simulated: true, Ready: true, KubeletVersion: "v1.36.3"}})
	f.APIGroups = value([]string{"windows.k8s.io"})
	f.DNS = value(DNS{Service: true})
	f.Missing = value([]Need{{"", "pods/exec", "create", ForSuite}, {"", "nodes/proxy", "get", ForSuite}})
	f.RuntimeClasses = Read[map[string]string]{Err: errors.New(`runtimeclasses.node.k8s.io is forbidden: User "<ci>" cannot list resource "runtimeclasses"`)}
	f.Namespaces = value([]string{"services-4711"})
	f.Declared = result.Declarations{AirGapped: true}
	return f
}

func TestReport(t *testing.T) {
	for name, facts := range map[string]*Facts{"good": goodCluster(t), "troubled": troubledCluster(t)} {
		r := NewReport("https://cluster.example:6443", Check(facts))
		for _, format := range Formats() {
			t.Run(name+"_"+string(format), func(t *testing.T) {
				var out bytes.Buffer
				if err := r.Write(&out, format); err != nil {
					t.Fatal(err)
				}
				if format != report.FormatJSON { // it is for machines: a test reads it in package cli
					golden.Equal(t, "TestReport_"+name+"_"+string(format)+".golden", out.String())
				}
			})
		}
	}
}

func TestWhatARunSays(t *testing.T) {
	var out bytes.Buffer
	if err := NewReport("https://cluster.example:6443", Check(troubledCluster(t))).WriteShort(&out); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "TestWhatARunSays.golden", out.String())
}

func TestTheRole(t *testing.T) {
	var out bytes.Buffer
	if err := WriteRole(&out); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "TestTheRole.golden", out.String())
}

func TestNetworksAreNamedForTheGrid(t *testing.T) {
	facts := goodCluster(t)
	facts.DaemonSets = value([]DaemonSet{{Namespace: "x", Name: "kube-flannel-ds"}, {Namespace: "x", Name: "calico-node"}, {Namespace: "x", Name: "calico-node-windows"}, {Namespace: "x", Name: "mine"}})
	got, err := facts.ForRun()
	if err != nil || !slices.Equal(got.Networks, []string{"Calico", "Flannel"}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestTaintedWindowsNodesKeepPodsOffThatSelectWindowsUnlessThePolicySteers(t *testing.T) {
	for steer, waits := range map[string]bool{"auto": false, "policy": false, "cordon": true, "off": true} {
		facts := goodCluster(t)
		facts.Steer = steer
		for i := range facts.Nodes.Value {
			if n := &facts.Nodes.Value[i]; n.OS == specs.Windows {
				n.Taints = []string{"os=windows:NoSchedule"}
			}
		}
		f := finding(Check(facts), "windows-nodes")
		if got := slices.Contains(f.Requirements, "core-network-custom-dns"); got != waits {
			t.Errorf("--steer=%s: the requirement waits for it: %t, want %t", steer, got, waits)
		}
	}
}
