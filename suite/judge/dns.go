package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// ClusterDNS is what a kubelet tells pods about the cluster's DNS.
type ClusterDNS struct {
	Servers []string // addresses
	Domain  string
}

// ReadClusterDNS reads it from what a kubelet answers at /configz.
func ReadClusterDNS(configz []byte) (*ClusterDNS, error) {
	var said struct {
		Config struct {
			ClusterDNS    []string `json:"clusterDNS"`
			ClusterDomain string   `json:"clusterDomain"`
		} `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(configz, &said); err != nil {
		return nil, fmt.Errorf("%q: %w", cut(string(configz)), err)
	}
	if len(said.Config.ClusterDNS) == 0 {
		return nil, errors.New("it has no clusterDNS: its pods are given none")
	}
	for _, server := range said.Config.ClusterDNS {
		if _, err := netip.ParseAddr(server); err != nil {
			return nil, fmt.Errorf("its clusterDNS: %w", err)
		}
	}
	domain := strings.Trim(said.Config.ClusterDomain, ".")
	if domain == "" {
		return nil, errors.New("it has no clusterDomain: its pods search none")
	}
	return &ClusterDNS{Servers: said.Config.ClusterDNS, Domain: domain}, nil
}

// Resolvers returns what is other than that the DNS servers of a pod are the
// cluster's. None is none.
func Resolvers(cluster, pod []string) []string {
	if len(pod) == 0 {
		return []string{"it has none"}
	}
	var problems []string
	for _, server := range pod {
		if !slices.ContainsFunc(cluster, func(c string) bool { return sameAddress(c, server) }) {
			problems = append(problems, fmt.Sprintf("%s is not the cluster's, which is %s", cut(server), strings.Join(cluster, ", ")))
		}
	}
	return problems
}

// sameAddress compares addresses, however they are written.
func sameAddress(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	return errX == nil && errY == nil && x.Unmap() == y.Unmap()
}
