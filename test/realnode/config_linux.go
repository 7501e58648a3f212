package realnode

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// The addresses at both ends of the way into the box, of the range that RFC
// 2544 sets aside for tests; simulated nodes have others of it.
const (
	hostAddress = "198.18.2.1"
	nodeAddress = "198.18.2.2"
	hostDevice  = "opr-node"
	nodeDevice  = "eth0"
)

const (
	containerdSocket = "/run/containerd/containerd.sock"
	clusterCIDR      = "10.244.0.0/16"
)

// paths are the files of a node.
type paths struct{ dir string }

func (p paths) own() string         { return filepath.Join(p.dir, "box") }
func (p paths) clusters() string    { return filepath.Join(p.dir, "clusters") }
func (p paths) log(s string) string { return filepath.Join(p.dir, "logs", s+".log") }
func (p paths) file(s string) string {
	return filepath.Join(p.dir, s)
}

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

// writeCNI writes the configuration of the pods' network: a route to each pod,
// and no bridge, so that no packet between pods misses kube-proxy's rules.
func (p paths) writeCNI(podCIDR string) error {
	if err := os.MkdirAll(p.file("cni"), 0o755); err != nil {
		return err
	}
	return writeJSON(p.file("cni/10-real-node.conflist"), map[string]any{
		"cniVersion": "0.4.0",
		"name":       "real-node",
		"plugins": []map[string]any{
			{
				"type": "ptp",
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
func (p paths) writeKubelet() error {
	// Pods ask nobody: the box has no way out, and the cluster no DNS.
	if err := os.WriteFile(p.file("resolv.conf"), nil, 0o644); err != nil {
		return err
	}
	return writeJSON(p.file("kubelet.json"), map[string]any{
		"apiVersion":               "kubelet.config.k8s.io/v1beta1",
		"kind":                     "KubeletConfiguration",
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               cgroupRoot,
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"address":                  nodeAddress,
		"readOnlyPort":             0,
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": p.file("ca.crt")},
		},
		"authorization": map[string]any{"mode": "Webhook"},
		"clusterDomain": "cluster.local",
		"clusterDNS":    []string{"10.96.0.10"},
		"resolvConf":    p.file("resolv.conf"),
		// A full disk is the machine's business, and images here cannot be
		// pulled again.
		"evictionHard":                map[string]any{"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%"},
		"imageGCHighThresholdPercent": 100,
	})
}

// writeProxy writes kube-proxy's configuration.
func (p paths) writeProxy() error {
	return writeJSON(p.file("kube-proxy.json"), map[string]any{
		"apiVersion":       "kubeproxy.config.k8s.io/v1alpha1",
		"kind":             "KubeProxyConfiguration",
		"mode":             "nftables",
		"clusterCIDR":      clusterCIDR,
		"hostnameOverride": NodeName,
		"clientConnection": map[string]any{"kubeconfig": p.file("kubeconfig")},
		// The machine's own limits stay.
		"conntrack": map[string]any{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
	})
}

func writeJSON(file string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o600)
}
