package judge

import (
	"net/netip"
	"strings"
	"testing"
)

func TestReadClusterDNS(t *testing.T) {
	for said, want := range map[string]string{
		`{"kubeletconfig":{"clusterDNS":["10.96.0.10"],"clusterDomain":"cluster.local"}}`:          "10.96.0.10 cluster.local",
		`{"kubeletconfig":{"clusterDNS":["10.96.0.10","fd00::a"],"clusterDomain":"example.com."}}`: "10.96.0.10,fd00::a example.com",
		`{"kubeletconfig":{"clusterDomain":"cluster.local"}}`:                                      "it has no clusterDNS",
		`{"kubeletconfig":{"clusterDNS":["10.96.0.10"]}}`:                                          "it has no clusterDomain",
		`{"kubeletconfig":{"clusterDNS":["kube-dns"],"clusterDomain":"cluster.local"}}`:            "its clusterDNS",
		`{}`:        "it has no clusterDNS",
		`Forbidden`: `"Forbidden": invalid character`,
	} {
		got, err := ReadClusterDNS([]byte(said))
		var text string
		if err != nil {
			text = err.Error()
		} else {
			text = strings.Join(got.Servers, ",") + " " + got.Domain
		}
		if !strings.HasPrefix(text, want) {
			t.Errorf("%s: %q, want %q", said, text, want)
		}
	}
}

func FuzzReadClusterDNS(f *testing.F) {
	f.Add(`{"kubeletconfig":{"clusterDNS":["10.96.0.10"],"clusterDomain":"cluster.local"}}`)
	f.Add(`{"kubeletconfig":null}`)
	f.Add("[]")
	f.Fuzz(func(t *testing.T, said string) {
		dns, err := ReadClusterDNS([]byte(said))
		if err != nil {
			return
		}
		if len(dns.Servers) == 0 || dns.Domain == "" {
			t.Fatalf("%q is taken for a cluster DNS: %+v", said, dns)
		}
		for _, server := range dns.Servers {
			if _, err := netip.ParseAddr(server); err != nil {
				t.Errorf("%q: %v", said, err)
			}
		}
	})
}

func TestResolvers(t *testing.T) {
	cluster := []string{"10.96.0.10", "fd00::a"}
	for pod, want := range map[string]string{
		"10.96.0.10":           "",
		"10.96.0.10 fd00:0::a": "",
		"":                     "it has none",
		"10.96.0.10 192.0.2.1": "192.0.2.1 is not the cluster's, which is 10.96.0.10, fd00::a",
		"search":               "search is not the cluster's, which is 10.96.0.10, fd00::a",
	} {
		if got := strings.Join(Resolvers(cluster, strings.Fields(pod)), "; "); got != want {
			t.Errorf("%q: %q, want %q", pod, got, want)
		}
	}
}
