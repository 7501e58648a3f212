package judge

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

const seenByHost = `op-readiness: {"hostname": "WIN-1", "addresses": ["192.0.2.7", "::1", "2001:db8::7", "fe80::1%12"], "tcp": [20000, 22], "udp": [20001]}`

func TestReadInterfaces(t *testing.T) {
	i, err := ReadInterfaces(seenByHost)
	if err != nil {
		t.Fatal(err)
	}
	if i.Hostname != "win-1" || len(i.Addresses) != 4 {
		t.Errorf("%+v", i)
	}
	for _, log := range []string{"", "op-readiness: {}", "op-readiness: []", `op-readiness: {"hostname": "a", "tcp": [-99999999999]}`, strings.Replace(seenByHost, "WIN-1", "", 1)} {
		if i, err := ReadInterfaces(log); err == nil {
			t.Errorf("%q was read: %+v", log, i)
		}
	}
}

func TestFree(t *testing.T) {
	i, err := ReadInterfaces(seenByHost)
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[int32]int32{20000: 20002, 20002: 20002, 22: 23, 65535: 65535, 65536: 0} {
		if got := i.Free(from); got != want {
			t.Errorf("from %d: %d, want %d", from, got, want)
		}
	}
	if got := (&Interfaces{TCP: []int32{65535}}).Free(65535); got != 0 {
		t.Errorf("the last port is taken, and %d was returned", got)
	}
}

func TestSharesAddress(t *testing.T) {
	node := &v1.Node{Status: v1.NodeStatus{Addresses: []v1.NodeAddress{
		{Type: v1.NodeHostName, Address: "win-1"}, {Type: v1.NodeInternalIP, Address: "192.0.2.7"}, {Type: v1.NodeInternalIP, Address: "2001:db8::7"},
	}}}
	node.Name = "win-1"
	for what, c := range map[string]struct {
		host string
		ips  []string
		seen []string
		want string
	}{
		"of one family":                    {"192.0.2.7", []string{"192.0.2.7"}, []string{"192.0.2.7"}, ""},
		"of both":                          {"192.0.2.7", []string{"192.0.2.7", "2001:db8::7"}, []string{"192.0.2.7", "2001:DB8:0::7%4"}, ""},
		"of a pod's own":                   {"192.0.2.7", []string{"10.244.1.9"}, []string{"192.0.2.7", "10.244.1.9"}, `pod p has the address "10.244.1.9": that is not of node win-1, which has 192.0.2.7 and 2001:db8::7`},
		"the second of a pod's own":        {"192.0.2.7", []string{"192.0.2.7", "fd00::9"}, []string{"192.0.2.7", "fd00::9"}, `pod p has the address "fd00::9"`},
		"which its process does not see":   {"192.0.2.7", []string{"192.0.2.7"}, []string{"10.244.1.9", "no address"}, `the process of pod p does not see the address "192.0.2.7" among its interfaces: 10.244.1.9, no address`},
		"none":                             {"192.0.2.7", []string{""}, []string{""}, `pod p has the address ""`},
		"of a host that is another's node": {"192.0.2.8", []string{"192.0.2.7"}, []string{"192.0.2.7"}, `pod p is said to be on host "192.0.2.8"`},
	} {
		pod := &v1.Pod{Status: v1.PodStatus{HostIP: c.host, PodIP: c.ips[0]}}
		pod.Name = "p"
		for _, ip := range c.ips {
			pod.Status.PodIPs = append(pod.Status.PodIPs, v1.PodIP{IP: ip})
		}
		problems := SharesAddress(node, pod, &Interfaces{Addresses: c.seen})
		if c.want == "" && len(problems) > 0 || c.want != "" && !slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, c.want) }) {
			t.Errorf("%s: %q, want %q", what, problems, c.want)
		}
	}
}

func FuzzReadInterfaces(f *testing.F) {
	f.Add(seenByHost)
	f.Add("op-readiness: {\"hostname\": \"\u0130\", \"tcp\": null}")
	f.Fuzz(func(t *testing.T, log string) {
		i, err := ReadInterfaces(log)
		if err != nil {
			return
		}
		if i.Hostname == "" {
			t.Error("a node without a name")
		}
		i.has("192.0.2.1")
		if port := i.Free(65000); port != 0 && (slices.Contains(i.TCP, port) || slices.Contains(i.UDP, port)) {
			t.Errorf("port %d is taken", port)
		}
	})
}
