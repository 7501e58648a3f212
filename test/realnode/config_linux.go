package realnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

const (
	containerdSocket = "/run/containerd/containerd.sock"
	clusterCIDR      = "10.244.0.0/16"
	clusterDomain    = "cluster.local"
	// dnsAddress is that of the cluster's DNS, of the API server's default range.
	dnsAddress = "10.96.0.10"
	// proxyMetrics is the port at which kube-proxy says what it has done.
	proxyMetrics = 10249
)

// shared are the files of a bed that all nodes read.
type shared struct{ dir string }

func (s shared) clusters() string       { return filepath.Join(s.dir, "clusters") }
func (s shared) archive() string        { return filepath.Join(s.dir, "images.tar") }
func (s shared) kubeconfig() string     { return filepath.Join(s.dir, "kubeconfig") }
func (s shared) authority() string      { return filepath.Join(s.dir, "ca.crt") }
func (s shared) corefile() string       { return filepath.Join(s.dir, "Corefile") }
func (s shared) node(name string) paths { return paths{filepath.Join(s.dir, name)} }

// made is a list of covered folders that cover nothing: they were not there
// before.
func (s shared) made() string { return filepath.Join(s.dir, "made") }

// paths are the files of a node.
type paths struct{ dir string }

func (p paths) own() string             { return filepath.Join(p.dir, "box") }
func (p paths) log(of Program) string   { return filepath.Join(p.dir, "logs", string(of)+".log") }
func (p paths) file(name string) string { return filepath.Join(p.dir, name) }
func (p paths) cni() string             { return filepath.Join(p.dir, "cni", "10-real-node.conflist") }

// writeContainerd writes containerd's configuration.
func (p paths) writeContainerd(pause, cni string) error {
	snapshotter := "overlayfs"
	if onOverlay(p.dir) {
		snapshotter = "native"
	}
	return os.WriteFile(p.file("containerd.toml"), fmt.Appendf(nil, `version = 2
root = %q
state = "/run/containerd"

[grpc]
address = %q

[plugins."io.containerd.internal.v1.opt"]
path = %q

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = %q
# Root without CAP_SYS_RESOURCE may not lower the score: runc would fail.
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = %q

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = %q
conf_dir = %q
`, p.file("containerd"), containerdSocket, p.file("opt"), pause, snapshotter, cni, p.file("cni")), 0o600)
}

// hasCNI tells whether the pods' network is configured.
func (p paths) hasCNI() bool {
	_, err := os.Stat(p.cni())
	return err == nil
}

// writeCNI writes the configuration of the pods' network: a route to each pod,
// and no bridge, so that no packet between pods misses kube-proxy's rules.
func (p paths) writeCNI(podCIDR string, network Network) error {
	if network == NetworkMissing {
		if err := os.Remove(p.cni()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	mtu := 0 // the kernel's own
	if network == NetworkBroken {
		mtu = 1 // bytes: the kernel refuses to make such a device
	}
	if err := os.MkdirAll(filepath.Dir(p.cni()), 0o755); err != nil {
		return err
	}
	return writeJSON(p.cni(), map[string]any{
		"cniVersion": "0.4.0",
		"name":       "real-node",
		"plugins": []map[string]any{
			{
				"type": "ptp",
				"mtu":  mtu,
				"ipam": map[string]any{
					"type":    "host-local",
					"dataDir": "/run/cni-ipam",
					"ranges":  [][]map[string]any{{{"subnet": podCIDR}}},
					"routes":  []map[string]any{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
		},
	})
}

// writeKubelet writes the kubelet's configuration.
func (n *Node) writeKubelet() error {
	// Pods ask nobody but the cluster: the box has no way out.
	if err := os.WriteFile(n.file("resolv.conf"), nil, 0o644); err != nil {
		return err
	}
	return n.writeConfig(Kubelet, Config{
		"apiVersion":               "kubelet.config.k8s.io/v1beta1",
		"kind":                     "KubeletConfiguration",
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               n.cgroup,
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"address":                  n.Address,
		"readOnlyPort":             0,
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": n.bed.authority()},
		},
		"authorization": map[string]any{"mode": "Webhook"},
		"clusterDomain": clusterDomain,
		"clusterDNS":    []string{dnsAddress},
		"resolvConf":    n.file("resolv.conf"),
		// A full disk is the machine's business, and images here cannot be
		// pulled again.
		"evictionHard":                map[string]any{"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%"},
		"imageGCHighThresholdPercent": 100,
	})
}

// writeProxy writes kube-proxy's configuration.
func (n *Node) writeProxy() error {
	return n.writeConfig(KubeProxy, Config{
		"apiVersion":         "kubeproxy.config.k8s.io/v1alpha1",
		"kind":               "KubeProxyConfiguration",
		"mode":               "nftables",
		"clusterCIDR":        clusterCIDR,
		"hostnameOverride":   n.Name,
		"metricsBindAddress": fmt.Sprintf("%s:%d", n.Address, proxyMetrics),
		"clientConnection":   map[string]any{"kubeconfig": n.bed.kubeconfig()},
		// The machine's own limits stay.
		"conntrack": map[string]any{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
	})
}

// writeConfig writes a program's configuration: base, with what all nodes' and
// then this node's is changed in.
func (n *Node) writeConfig(program Program, base Config) error {
	maps.Copy(base, n.bed.options.Config[program])
	maps.Copy(base, n.changes[program])
	return writeJSON(n.file(string(program)+".json"), base)
}

// writeKubeconfig writes the cluster's kubeconfig as it is used in boxes, and
// the authority whose clients kubelets accept.
func (b *Bed) writeKubeconfig() error {
	config, err := clientcmd.LoadFromFile(b.Cluster.Kubeconfig)
	if err != nil {
		return err
	}
	cluster := config.Clusters[config.Contexts[b.Cluster.Context].Cluster]
	server, err := url.Parse(cluster.Server)
	if err != nil {
		return err
	}
	server.Host = net.JoinHostPort(hostAddress, server.Port())
	cluster.Server = server.String()
	config.CurrentContext = b.Cluster.Context
	if err := os.WriteFile(b.authority(), cluster.CertificateAuthorityData, 0o600); err != nil {
		return err
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return os.WriteFile(b.kubeconfig(), data, 0o600)
}

func writeJSON(file string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o600)
}
