package judge

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestEndpoints(t *testing.T) {
	pod := func(name string, ips ...string) v1.Pod {
		p := v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
		p.Status.PodIP = ips[0]
		for _, ip := range ips {
			p.Status.PodIPs = append(p.Status.PodIPs, v1.PodIP{IP: ip})
		}
		return p
	}
	of := func(uid, ip string) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{ip}, TargetRef: &v1.ObjectReference{Name: "stable-0", UID: types.UID(uid)}}
	}
	slice := func(family discoveryv1.AddressType, all ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{AddressType: family, Endpoints: all}
	}
	notReady, nobody, nowhere := of("uid-a", "10.0.0.1"), of("", "10.0.0.9"), of("uid-a", "10.0.0.1")
	notReady.Conditions.Ready = new(bool)
	nobody.TargetRef, nowhere.Addresses = nil, nil
	a, b := pod("a", "10.0.0.1", "fd00::1"), pod("b", "10.0.0.2", "fd00::2")
	const v4, v6 = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	for what, c := range map[string]struct {
		slices []discoveryv1.EndpointSlice
		want   string // of the problems, joined; "" for none
	}{
		"both":             {[]discoveryv1.EndpointSlice{slice(v4, of("uid-a", "10.0.0.1"), of("uid-b", "10.0.0.2"))}, ""},
		"both, in two":     {[]discoveryv1.EndpointSlice{slice(v4, of("uid-a", "10.0.0.1")), slice(v4, of("uid-b", "10.0.0.2"))}, ""},
		"both, one twice":  {[]discoveryv1.EndpointSlice{slice(v4, of("uid-a", "10.0.0.1")), slice(v4, of("uid-a", "10.0.0.1"), of("uid-b", "10.0.0.2"))}, ""},
		"of both families": {[]discoveryv1.EndpointSlice{slice(v4, of("uid-a", "10.0.0.1"), of("uid-b", "10.0.0.2")), slice(v6, of("uid-a", "fd00::1"), of("uid-b", "fd00::2"))}, ""},
		"of one in one":    {[]discoveryv1.EndpointSlice{slice(v4, of("uid-a", "10.0.0.1"), of("uid-b", "10.0.0.2")), slice(v6, of("uid-a", "fd00::1"))}, "pod b is no IPv6 endpoint"},
		"none":             {nil, "the Service has no EndpointSlice"},
		"empty":            {[]discoveryv1.EndpointSlice{slice(v4)}, "pod a is no IPv4 endpoint; pod b is no IPv4 endpoint"},
		"one is missing":   {[]discoveryv1.EndpointSlice{slice(v4, of("uid-a", "10.0.0.1"))}, "pod b is no IPv4 endpoint"},
		"one of before":    {[]discoveryv1.EndpointSlice{slice(v4, of("uid-a", "10.0.0.1"), of("uid-b", "10.0.0.2"), of("uid-old", "10.0.0.3"))}, "the endpoint [10.0.0.3] is of a pod stable-0 that is gone (UID uid-old)"},
		"its old address":  {[]discoveryv1.EndpointSlice{slice(v4, of("uid-a", "10.0.0.1"), of("uid-b", "10.0.0.7"))}, "the endpoint [10.0.0.7] of pod b is not at the pod's address: that is 10.0.0.2"},
		"address used again": {[]discoveryv1.EndpointSlice{slice(v4, of("uid-old", "10.0.0.1"), of("uid-b", "10.0.0.2"))},
			"pod a is no IPv4 endpoint; the endpoint [10.0.0.1] is of a pod stable-0 that is gone (UID uid-old)"},
		"one is not ready": {[]discoveryv1.EndpointSlice{slice(v4, notReady, of("uid-b", "10.0.0.2"))}, "the endpoint [10.0.0.1] of pod a is not ready"},
		"one is no pod's":  {[]discoveryv1.EndpointSlice{slice(v4, of("uid-a", "10.0.0.1"), of("uid-b", "10.0.0.2"), nobody)}, "the endpoint [10.0.0.9] is no pod's"},
		"one is nowhere":   {[]discoveryv1.EndpointSlice{slice(v4, nowhere, of("uid-b", "10.0.0.2"))}, "the endpoint of pod a has no address"},
	} {
		if got := strings.Join(Endpoints(c.slices, []v1.Pod{a, b}), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
