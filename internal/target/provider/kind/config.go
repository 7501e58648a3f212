package kind

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"gopkg.in/yaml.v3"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
)

// configVersion is the only version of kind's configuration
// (https://kind.sigs.k8s.io/docs/user/configuration/).
const configVersion = "kind.x-k8s.io/v1alpha4"

// preferredAddresses are the addresses at which the API server calls kubelets. Only
// simulated nodes have an InternalDNS: it leads to where nothing listens.
const preferredAddresses = "InternalDNS,InternalIP,ExternalIP,Hostname"

// readConfig reads a file of kind's configuration. Names and nodes are not for it to
// say. An empty path is an empty configuration.
func readConfig(path string) (*v1alpha4.Cluster, error) {
	config := &v1alpha4.Cluster{}
	if path == "" {
		return config, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading kind's configuration: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(config); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(path+": "+format, args...)) }
	if config.Kind != "Cluster" || config.APIVersion != configVersion {
		fault("kind %q of apiVersion %q: use Cluster of %s", config.Kind, config.APIVersion, configVersion)
	}
	if config.Name != "" {
		fault("name: remove it, and use --name")
	}
	if len(config.Nodes) > 0 {
		fault("nodes: remove them, and use --linux-nodes")
	}
	if config.Networking.IPFamily == v1alpha4.IPv6Family {
		fault("networking.ipFamily: simulated nodes have IPv4 addresses: use ipv4 or dual")
	}
	return config, errors.Join(faults...)
}

// configOf returns kind's configuration of a planned cluster.
func configOf(p *provider.Plan) (*v1alpha4.Cluster, error) {
	config, err := readConfig(p.Set[Config])
	if err != nil {
		return nil, err
	}
	config.TypeMeta = v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: configVersion}
	config.Name = p.Name
	config.Nodes = []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole, Image: p.Set[Image]}}
	for range p.LinuxNodes {
		config.Nodes = append(config.Nodes, v1alpha4.Node{Role: v1alpha4.WorkerRole, Image: p.Set[Image]})
	}
	// kubeadm's older configuration has a map of arguments, the newer one a list.
	config.KubeadmConfigPatchesJSON6902 = append(config.KubeadmConfigPatchesJSON6902,
		preferAddresses("v1beta3", "/apiServer/extraArgs/kubelet-preferred-address-types", preferredAddresses),
		preferAddresses("v1beta4", "/apiServer/extraArgs/-", map[string]string{"name": "kubelet-preferred-address-types", "value": preferredAddresses}))
	return config, nil
}

func preferAddresses(version, path string, value any) v1alpha4.PatchJSON6902 {
	patch, _ := yaml.Marshal([]map[string]any{{"op": "add", "path": path, "value": value}}) // strings and maps
	return v1alpha4.PatchJSON6902{Group: "kubeadm.k8s.io", Version: version, Kind: "ClusterConfiguration", Patch: string(patch)}
}
