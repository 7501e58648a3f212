package judge

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func pingable(name string, addresses ...string) v1.Node {
	var n v1.Node
	n.Name = name
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = 10250
	n.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeHostName, Address: name}}
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: a})
	}
	return n
}

func TestPings(t *testing.T) {
	nodes := []v1.Node{pingable("a", "192.0.2.1"), pingable("b", "192.0.2.2", "2001:db8::2")}
	if got, want := PingTargets(nodes), "192.0.2.1,10250 192.0.2.2,10250 2001:db8::2,10250"; got != want {
		t.Errorf("targets %q, want %q", got, want)
	}
	const good = `op-readiness: {"pings": {"192.0.2.1": {"answers": 3, "connects": true}, "192.0.2.2": {"answers": 1, "connects": true}, "2001:db8::2": {"answers": 3, "connects": false}}}`
	for what, c := range map[string]struct {
		log, want string
	}{
		"all answer":         {good, ""},
		"one is blocked":     {strings.Replace(good, `"answers": 1, `, `"answers": 0, `, 1), "node a gets no answer to its pings of node b at 192.0.2.2, whose kubelet can be connected to: ICMP is blocked"},
		"one is not there":   {strings.Replace(good, `{"answers": 3, "connects": false}`, `{}`, 1), "node a gets no answer to its pings of node b at 2001:db8::2, and cannot connect to its kubelet either"},
		"one was not pinged": {strings.Replace(good, "192.0.2.1", "192.0.2.9", 1), "node a gets no answer to its pings of node a at 192.0.2.1"},
		"no answer":          {"sh: ping: not found", "node a: script ping: it gives no answer"},
	} {
		answers, problems := Pings("a", nodes, c.log)
		got := strings.Join(problems, "; ")
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
		if c.want == "" && answers != "a 3 of 3, b 1 of 3, b 3 of 3" {
			t.Errorf("%s: %q", what, answers)
		}
	}
	if _, problems := Pings("a", []v1.Node{pingable("c")}, good); len(problems) != 1 {
		t.Errorf("a node without an address: %q", problems)
	}
}

func FuzzPings(f *testing.F) {
	f.Add(`op-readiness: {"pings": {"192.0.2.1": {"answers": 3, "connects": true}}}`)
	f.Add(`op-readiness: {"pings": null}`)
	f.Fuzz(func(t *testing.T, log string) {
		if _, problems := Pings("a", []v1.Node{pingable("a", "192.0.2.1")}, log); len(problems) == 0 && !strings.Contains(log, "192.0.2.1") {
			t.Errorf("%q is taken for an answer", log)
		}
	})
}
