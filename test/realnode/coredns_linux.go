package realnode

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/windows-op-readiness/windows-op-readiness/test/program"
)

// corednsModule is the folder of the module of which CoreDNS is built, below the
// top of the repository.
const corednsModule = "test/coredns"

// corefile has CoreDNS answer as a cluster's does, and say of all other names
// that there are none: the box has no way out.
const corefile = `%[2]s in-addr.arpa ip6.arpa {
    bind %[1]s
    errors
    kubernetes {
        kubeconfig %[3]s
        pods insecure
        ttl 5
    }
    cache 5
    loadbalance
}
. {
    bind %[1]s
    errors
    template ANY ANY {
        rcode NXDOMAIN
    }
}
`

// CoreDNSPath returns where below the folder cache that CoreDNS is, or would be,
// which the checkout around the working folder makes.
func CoreDNSPath(cache string) (string, error) {
	source, err := corednsSource()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		data, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(data), data)
	}
	return filepath.Join(cache, "test", runtime.GOOS+"-"+runtime.GOARCH, fmt.Sprintf("coredns-%.6x", sum.Sum(nil))), nil
}

// corednsSource returns the folder of the module.
func corednsSource() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		source := filepath.Join(dir, corednsModule)
		if _, err := os.Stat(filepath.Join(source, "go.mod")); err == nil {
			return source, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no %s in %s or above: run it in a checkout of this project", corednsModule, start)
		}
	}
}

// BuildCoreDNS builds CoreDNS of the modules that test/coredns pins, unless it is
// there already, and returns its path below the folder cache.
func BuildCoreDNS(ctx context.Context, cache string, progress io.Writer) (string, error) {
	path, err := CoreDNSPath(cache)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	source, err := corednsSource()
	if err != nil {
		return "", err
	}
	tell(progress, "building CoreDNS, the cluster's DNS (up to 2m0s from a cold build cache, seconds from a warm one)")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	built := filepath.Join(work, "coredns")
	build := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-ldflags", "-s -w", "-o", built, ".")
	build.Dir = source
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0")
	if _, err := program.Output(build); err != nil {
		return "", fmt.Errorf("building CoreDNS: %w", err)
	}
	// Another process that builds it at the same time has the same.
	return path, os.Rename(built, path)
}

// makeDNS writes the DNS's configuration and makes its Service. It is a program of
// the first node, so that the Service has no pods: its endpoint is that node.
func (b *Bed) makeDNS(ctx context.Context) error {
	address := b.Nodes[0].Address
	if err := os.WriteFile(b.corefile(), fmt.Appendf(nil, corefile, address, clusterDomain, b.kubeconfig()), 0o600); err != nil {
		return err
	}
	ports := []corev1.ServicePort{{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}, {Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP}}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "kube-dns-" + NodeName, Labels: map[string]string{discoveryv1.LabelServiceName: "kube-dns"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	}
	for i := range ports {
		p := &ports[i]
		p.TargetPort = intstr.FromInt32(p.Port)
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &p.Port, Protocol: &p.Protocol})
	}
	if _, err := b.client.CoreV1().Services(metav1.NamespaceSystem).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-dns", Labels: map[string]string{"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS"}},
		Spec:       corev1.ServiceSpec{ClusterIP: dnsAddress, Ports: ports},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := b.client.DiscoveryV1().EndpointSlices(metav1.NamespaceSystem).Create(ctx, slice, metav1.CreateOptions{})
	return err
}

// resolves asks the DNS at that address for a name that every cluster has.
func resolves(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(address, "53"))
	}}
	_, err := resolver.LookupHost(ctx, "kubernetes.default.svc."+clusterDomain+".")
	return err
}
