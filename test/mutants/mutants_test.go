package mutants_test

import (
	"cmp"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/realnode"
)

const (
	distinct = "Pods of one node should have distinct addresses"
	moreCPU  = "Pods that request more CPU than a node has should stay pending"
	moreMem  = "Pods that request more memory than a node has should stay pending"
	churn    = "A Deployment pod should be rescheduled 50 times"

	clusterIP = "A ClusterIP should route to ten Windows pods"
	nodePort  = "A NodePort should route to ten Windows pods on every node"

	stable     = "StatefulSet should keep names and routes when its pods are replaced"
	limitedCPU = "CPU limits should be honored over time"
	limitedMem = "Memory limits should be honored over time"
	customDNS  = "Pods should be reached through records and search paths of the pod specification"
	toLinux    = "NodePort should reach Linux pods from Windows pods on every node"
	toWindows  = "NodePort should reach Windows pods from Linux pods on every node"

	shareOne   = "Shared files should be read and written by three containers of a pod at once"
	shareThree = "Shared files should be read and written by three pods of a node at once"

	defender = "Microsoft Defender should exclude containerd on every Windows node"

	privileged = "HostProcess pods should use privileged system interfaces"

	hostRules = "HostProcess pods should create and manage host network rules"

	nodeAddress = "HostProcess pods should share the address of their node"
	nodeBinding = "HostProcess pods should bind to the interfaces of their node"

	runAs     = "Containers should run as the user that the pod names"
	podOS     = "Pod.OS should be enforced by the kubelet and the API"
	rebootAll = "Windows nodes should all be rebooted and their pods recover"
	rebootOne = "A Windows node should take part again after a reboot"
	nodePings = "Nodes should ping each other"
	nodePorts = "Nodes should reach TCP and UDP NodePorts through their own proxy"
)

// mutant is one thing that is broken, and what a test must say of it.
type mutant struct {
	test  string
	fault string
	make  fault
	says  string // a regular expression
}

// group is mutants that share a cluster, one after the other. Groups run beside each
// other.
type group struct {
	bed     func(*testing.T) *bed
	mutants []mutant
	// elsewhere says that its tests are run without a fault in another group.
	elsewhere bool
}

var groups = map[string]group{
	"network": {bed: simulated, mutants: []mutant{
		{distinct, "a pod has its node's address", address(ofItsNode), "pod distinct-[0-9] has the address [0-9.]+ of node windows"},
		{distinct, "two pods have one address", address(ofItsNeighbour), "pod distinct-[0-9] has the address [0-9.]+ of pod distinct-[0-9]"},
	}},
	"scheduling": {bed: simulated, mutants: []mutant{
		{moreCPU, "somebody binds the pod", whenPending(bindIt, nil), "was put on node"},
		{moreCPU, "a node grows", whenPending(growNode, shrinkNode), "was put on node"},
		{moreCPU, "every Windows node has a taint that the pod does not tolerate", taintWindows, "0 of 4 nodes are said to have insufficient cpu: .*untolerated taint"},
		{moreMem, "somebody binds the pod", whenPending(bindIt, nil), "was put on node"},
		{moreMem, "every Windows node has a taint that the pod does not tolerate", taintWindows, "0 of 4 nodes are said to have insufficient memory: .*untolerated taint"},
	}},
	"churn": {bed: simulated, mutants: []mutant{
		{churn, "pods are gated from the 20th on", atChurn(20, gatePods), "is to be ready within"},
		{churn, "a node is not ready for a moment", atChurn(10, loseNode), "nodes did not stay ready"},
	}},
	"churn-slow": {bed: simulated, elsewhere: true, mutants: []mutant{
		{churn, "pods have a finalizer that nobody takes off", keepPods, "are still terminating"},
		{churn, "nobody can delete pods beside it", refuseDeletions, "0 deletions beside it took effect"},
	}},
	"defender": {bed: played, mutants: []mutant{
		{defender, "an exclusion is missing", answers("^defender-0$", `"processes":["containerd.exe"]`, `"processes":[]`), `node windows-1: Microsoft Defender scans process C:.*containerd.exe, and folder C:.*root of containerd's root, and folder .*state of containerd's state`},
		{defender, "one of two folders is excluded", answers("^defender-1$", `"D:\\containerd"`, `"D:\\containerd\\root"`), `node windows-2: Microsoft Defender scans process .*, and folder D:.*containerd.*state of containerd's state; it leaves out`},
		{defender, "Defender scans", answers("^defender-3$", `"Passive Mode"`, `"Normal"`), `node windows-4: Microsoft Defender scans process`},
		{defender, "exclusions are hidden", answers("^defender-1$", `"D:\\containerd"`, `"N/A: Administrators are not allowed to view exclusions"`), `node windows-2: the exclusions of Microsoft Defender are hidden`},
		{defender, "the script fails", answers("^defender-2$", "", "Get-CimInstance : Access is denied.\r\n"), `asking node windows-3: script defender: it gives no answer, but says "Get-CimInstance : Access is denied`},
		{defender, "HostProcess pods are refused", refusePrivileged("defender"), `the cluster's admission refuses pod defender-0, without which the test cannot be run: .*violates PodSecurity "baseline:.*hostProcess`},
	}},
	"privileged": {bed: played, mutants: []mutant{
		{privileged, "a service does not run", answers("^privileged-host$", "vmcompute=Running", "vmcompute=Stopped"), `services: it found .*vmcompute=Stopped`},
		{privileged, "the compute service refuses to answer", both(
			answers("^privileged-host$", `"systems":"1f6a 77b0",`, ""),
			answers("^privileged-host$", `"failed":{}`, `"failed":{"systems":"HcsEnumerateComputeSystems returned 0x80070005"}`)), `systems: it failed: HcsEnumerateComputeSystems returned 0x80070005`},
		{privileged, "no compute system is seen", answers("^privileged-host$", `"1f6a 77b0"`, `""`), `systems: it found `},
		{privileged, "the kubelet's process is not seen", answers("^privileged-host$", `"kubelet":"4242"`, `"kubelet":""`), `kubelet: it found `},
		{privileged, "a group cannot be removed", answers("^privileged-host$", `left=0","event"`, `left=1","event"`), `group: it found .* left=1`},
		{privileged, "the build is not the node's", answers("^privileged-host$", "20348", "17763"), `build: it found .*17763`},
		{privileged, "an ordinary container can do the same", answersAs("privileged-control", "privileged-host"), `what an ordinary pod on node windows-1 is to fail in(.|\n)*services: an ordinary container found`},
		{privileged, "nothing is tried in an ordinary container", answers("^privileged-control$", "", ""), `in an ordinary pod on node windows-1: script privileged: it gives no answer`},
		{privileged, "HostProcess pods are refused", refusePrivileged("privileged"), `the cluster's admission refuses pod privileged-host, .*violates PodSecurity`},
	}},
	"hcn": {bed: played, mutants: []mutant{
		{hostRules, "what a killed run has left cannot be removed", answers("^hcn-before$", `"name":"cbr0"}`, `"name":"cbr0"},{"id":"c3","name":"op-readiness-hcn-0"}`), `network op-readiness-hcn-0 \(c3\) is left of another run`},
		{hostRules, "the network cannot be made", answers("^hcn-make$", `"failed":""`, `"failed":"HNSCall POST /networks/ returned 0x80070005"`), `the pod that makes the network sees on node windows-1(.|\n)*it failed: HNSCall POST /networks/ returned 0x80070005`},
		{hostRules, "the rule is not there", answers("^hcn-make$", `"Block In 6 445"`, ""), `the pod that makes the network sees on node windows-1(.|\n)*the endpoint has the rules \[\], and not .*Block In 6 445`},
		{hostRules, "another pod does not see the network", answersAs("hcn-read", "hcn-before"), `what another pod sees on node windows-1(.|\n)*0 networks are named op-readiness-hcn-`},
		{hostRules, "the rule stays as it was", answers("^hcn-change$", "Block In 6 139", "Block In 6 445"), `the pod that changes the rule sees(.|\n)*the endpoint has the rules .*445.*, and not .*139`},
		{hostRules, "the change lasts for one pod", answersAs("hcn-read-changed", "hcn-read"), `another pod, after the change, sees(.|\n)*the endpoint has the rules .*445.*, and not .*139`},
		{hostRules, "an ordinary container can do the same", answersAs("hcn-control", "hcn-read"), `an ordinary container sees the networks`},
		{hostRules, "the network is still there in the end", answersAs("hcn-after", "hcn-read"), `1 networks named op-readiness-hcn-[0-9]+ are still there`},
		{hostRules, "a foreign network is gone", answers("^hcn-after$", `,{"id":"a1","name":"cbr0"}`, ""), `network cbr0 \(a1\) was there before, and is gone`},
		{hostRules, "ordinary pods are cut off by the network", cutOff("hcn-client", "hcn-make"), `1 of 1 did not answer: hcn-beside`},
		{hostRules, "the node is not ready for a moment", unreadyAt("hcn", "hcn-change"), `nodes did not stay ready(.|\n)*windows-1 was not ready`},
		{hostRules, "a leftover cannot be removed", answersAs("hcn-cleanup", "hcn-read"), `what is left on node windows-1`},
	}},
	"real":    {bed: real, mutants: slices.Concat(routes, limits, storage, hosts)},
	"reboots": {bed: rebooted, mutants: reboots},
}

// Those for which containers run share two real nodes.
var (
	routes = []mutant{
		{clusterIP, "the Service sends each client to one pod", sticky("ten"), "9 of 10 did not answer"},
		{clusterIP, "an endpoint is left out", leaveOut("ten"), "[1-9] of 10 did not answer"},
		{clusterIP, "a pod that is none of its own is an endpoint", addStranger, "others answered: client-other"},
		{clusterIP, "endpoints are never taken out", keepEndpoints, "after the Deployment was scaled to five"},
		{nodePort, "the Service sends each client to one pod", sticky("ten"), "9 of 10 did not answer"},
		{toLinux, "the Service sends each client to one pod", sticky("nodeport"), "1 of 2 did not answer"},
		{toWindows, "the Service sends each client to one pod", sticky("nodeport"), "1 of 2 did not answer"},
		{toLinux, "a node serves its own pods alone", ownPodsOnly, "which is the NodePort of node real-linux-2"},
		{toWindows, "a node drops what comes for its NodePorts", drop("tcp dport 30000-32767"), "which is the NodePort of node real-linux-2"},
		{stable, "kube-proxy stops after the pods were reached", stopProxies, "[1-3] of 3 did not answer"},
		{stable, "changes of endpoints are undone", keepSlices, "is of a pod stable-0 that is gone"},
		{stable, "the pods that are made anew are gated", gateSuccessors, "pod stable-0 is Pending; SchedulingGated"},
		{customDNS, "the record is not in the pod", noRecord, "custom-[a-z0-9]+.op-readiness.test cannot be resolved"},
		{customDNS, "the search path is not in the pod", noSearch, "web-[a-z0-9]+ cannot be resolved"},
		{customDNS, "an ordinary pod finds the same by that name", nameEverywhere, "custom-dns-server answered"},
		{customDNS, "an ordinary pod asks another DNS server", otherDNS, "192.0.2.53 is not the cluster's, which is 10.96.0.10"},
	}
	limits = []mutant{
		{limitedCPU, "the limit is not in the pod", noLimit, "at most 0.55 are allowed"},
		{limitedCPU, "the kubelet ignores it", ignoreQuota, "at most 0.55 are allowed"},
		{limitedCPU, "the pods do nothing", noLoad, "without at least 0.25 nothing is shown of a limit"},
		{limitedMem, "the limit is not in the pod", noLimit, "taking 512M succeeded under a limit of 256Mi"},
		{limitedMem, "the pod beside it is restarted", unwell, "of pod limited-sibling beside it was restarted"},
	}
	storage = []mutant{
		{shareOne, "one container has a volume of its own", ownVolume, "a reads 0 whole lines of c, which wrote 50"},
		{shareOne, "one container cannot write", readOnly, "a reads 0 whole lines of c, which wrote 50"},
		{shareThree, "each pod has a folder of its own", ownFolder, "a had seen no line of b when it wrote its last one"},
	}
	hosts = []mutant{
		{privileged, "a HostProcess pod sees its own processes alone", hostPID("privileged-host", false), "kubelet: it failed: no process kubelet is seen"},
		{privileged, "an ordinary container sees those of its node", hostPID("privileged-control", true), `kubelet: an ordinary container found`},
		{nodeAddress, "the pod has a network of its own", ownNetwork, `pod hpc-server has the address .?"10.244.[0-9.]+.?": that is not of node real-linux`},
		{nodeBinding, "the pod has a network of its own", ownNetwork, "cannot assign requested address"},
		{nodeBinding, "the pod listens at all addresses", everywhere, "answers at 127.0.0.1:[0-9]+, where pod hpc-server does not listen by UDP"},
		{runAs, "the pod's user is taken off", noPodUser, `the pod names 1000, and its container runs as .?"0`},
		{runAs, "the container's user is taken off", noContainerUser, `the container names 2000, its pod 1000, and it runs as .?"1000`},
		{podOS, "nothing says of which system a pod is", noPodOS, "container pause of pod os-foreign has run"},
		{podOS, "fields of Linux are taken off before the API server looks", noLinuxFields, "takes a pod of system windows with a field of Linux: true, and false is expected"},
		{nodePings, "a node drops pings", drop("icmp type echo-request"), "node real-linux gets no answer to its pings of node real-linux-2 at [0-9.]+, whose kubelet can be connected to: ICMP is blocked"},
		{nodePorts, "a node drops what comes for its TCP NodePorts", drop("tcp dport 30000-32767"), "by http, the NodePort of node real-linux-2"},
		{nodePorts, "a node drops what comes for its UDP NodePorts", drop("udp dport 30000-32767"), "by udp, the NodePort of node real-linux-2"},
		{nodePorts, "an endpoint is left out", leaveOut("worker"), "1 of 3 did not answer"},
		{nodeBinding, "another answers where the pod was", takeOver, "answers at [0-9.:]+ after pod hpc-server was deleted"},
	}
	reboots = []mutant{
		{rebootAll, "a node keeps its boot id", boot(realnode.Boot{SameID: true}), "node real-linux was not rebooted: its boot id is still"},
		{rebootAll, "a kubelet does not come back", boot(realnode.Boot{Without: []realnode.Program{realnode.Kubelet}}), "node real-linux was not rebooted"},
		{rebootAll, "a node comes back without its pods' network", boot(realnode.Boot{Network: realnode.NetworkBroken}), "of [0-9] pods of reboot-(server|deployed) are ready"},
		{rebootAll, "a node is cordoned when it comes back", cordon, "node real-linux is cordoned"},
		{rebootOne, "kube-proxy does not come back", boot(realnode.Boot{Without: []realnode.Program{realnode.KubeProxy}}), "pods that pod reboot-server-new-0 on node real-linux reaches at"},
	}
)

// all says that also those mutants are made for which containers must run.
var all = flag.Bool("mutants.all", false, "make also the mutants for which containers must run; it takes some minutes more")

// only narrows a group to some of its tests.
var only = flag.String("mutants.only", "", "in each group, only the tests whose names have these words")

// Each test passes, and with each of its mutants it fails for that reason.
func TestMutants(t *testing.T) {
	var mu sync.Mutex
	var shown []string // a row for each mutant
	t.Cleanup(func() {
		if t.Failed() {
			return // what failed is to be the last that is read
		}
		w := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "test\tfault\twithout it\twith it")
		for _, row := range slices.Sorted(slices.Values(shown)) {
			fmt.Fprintln(w, row)
		}
		if err := w.Flush(); err != nil {
			t.Error(err)
		}
	})
	var tested []string
	for name, group := range groups {
		for _, m := range group.mutants {
			tested = append(tested, m.test)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := group.bed(t)
			if !group.elsewhere && !t.Run("without a fault", func(t *testing.T) { b.passes(t, group.mutants) }) || b.nodes != nil && !*all {
				return
			}
			for _, m := range group.mutants {
				if !strings.Contains(m.test, *only) {
					continue
				}
				undo := m.make(b)
				failure := b.broken(m.test)
				undo()
				says := regexp.MustCompile(m.says)
				mu.Lock()
				shown = append(shown, strings.Join([]string{m.test, m.fault, "passed", lineWith(cmp.Or(failure, "passed"), says)}, "\t"))
				mu.Unlock()
				if !says.MatchString(failure) {
					t.Errorf("%s: when %s, it must say %q: it %s", m.test, m.fault, m.says, cmp.Or(failure, "passed"))
				}
			}
		})
	}
	for _, name := range specs.OwnTests().Names() {
		if !slices.ContainsFunc(tested, func(words string) bool { return strings.Contains(name, words) }) {
			t.Errorf("%s has no mutant: that it can fail is not shown", name)
		}
	}
}

// passes runs the tests of mutants once each, without a fault: beside each other where
// they allow it.
func (b *bed) passes(t *testing.T, mutants []mutant) {
	seen := map[string]bool{}
	for _, m := range mutants {
		if seen[m.test] || !strings.Contains(m.test, *only) {
			continue
		}
		seen[m.test] = true
		t.Run(m.test, func(t *testing.T) {
			own := *b
			own.T = t
			if !strings.Contains(own.named(m.test), "[Serial]") {
				t.Parallel()
			}
			if failure := own.run(m.test); failure != "" {
				t.Errorf("without a fault it %s", failure)
			}
		})
	}
}

// lineWith returns the line of a failure that says what it is to say, else its first.
func lineWith(failure string, says *regexp.Regexp) string {
	for line := range strings.Lines(failure) {
		if says.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	first, _, _ := strings.Cut(failure, "\n")
	return first
}

// On a cluster without Windows nodes nothing can be shown, and nothing passes.
func TestNothingPassesWithoutWindowsNodes(t *testing.T) {
	t.Parallel()
	b := simulated(t)
	for _, node := range b.windows(t.Context()) {
		b.must(b.client.CoreV1().Nodes().Delete(t.Context(), node.Name, metav1.DeleteOptions{}))
	}
	for _, name := range specs.OwnTests().Names() {
		if failure := b.run(name); !strings.Contains(failure, "no windows node is ready and takes pods") {
			t.Errorf("%s: it %s", name, cmp.Or(failure, "passed"))
		}
	}
}
