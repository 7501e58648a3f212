package suite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/e2e/framework"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"
	admissionapi "k8s.io/pod-security-admission/api"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

var _ = describe(func() {
	f := framework.NewDefaultFramework("custom-dns")
	f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

	const reachWithin = 2 * time.Minute

	framework.It("Pods should be reached through records and search paths of the pod specification", func(ctx context.Context) {
		windows := target(ctx, f.ClientSet)
		cluster := clusterDNS(ctx, f.ClientSet, &windows.nodes[0])
		// The names are of this run alone, so that nobody has heard of them before.
		record := fmt.Sprintf("custom-%s.op-readiness.test", rand.String(8))
		short := "web-" + rand.String(8)

		elsewhere, err := f.CreateNamespace(ctx, "custom-dns", nil)
		framework.ExpectNoError(err, "creating a second namespace")
		pod := named(windows.netexec(), "custom-dns-server")
		pod.Labels = map[string]string{"app": "custom-dns-server"}
		server := &waitRunning(ctx, f, createIn(ctx, f, elsewhere.Name, pod))[0]
		serve(ctx, f, elsewhere.Name, short, "custom-dns-server", v1.ServiceSpec{})

		aliased := named(windows.netexec(), "custom-dns-record")
		aliased.Spec.HostAliases = []v1.HostAlias{{IP: server.Status.PodIP, Hostnames: []string{record}}}
		searching := named(windows.netexec(), "custom-dns-search")
		searching.Spec.DNSPolicy = v1.DNSNone
		searching.Spec.DNSConfig = &v1.PodDNSConfig{
			Nameservers: cluster.Servers,
			Searches:    []string{fmt.Sprintf("%s.svc.%s", elsewhere.Name, cluster.Domain)},
		}
		ordinary := named(windows.netexec(), "custom-dns-control")
		running := waitRunning(ctx, f, create(ctx, f, aliased), create(ctx, f, searching), create(ctx, f, ordinary))
		withRecord, withSearch, control := &running[0], &running[1], &running[2]

		byRecord := address{host: record, port: netexecPort}
		bySearch := address{host: short, port: servicePort}
		reaches(ctx, f, withRecord, byRecord, []string{server.Name}, reachWithin, "by a record of its specification")
		reaches(ctx, f, withSearch, bySearch, []string{server.Name}, reachWithin, "by a search path of its specification")

		// The names are the two pods' own: an ordinary one, which reaches the server by its
		// address, does not by them.
		reaches(ctx, f, control, address{host: server.Status.PodIP, port: netexecPort}, []string{server.Name}, reachWithin, "by its address")
		for _, to := range []address{byRecord, bySearch} {
			d, err := dial(ctx, f, control, to.host, to.port, 1)
			framework.ExpectNoError(err)
			gomega.Expect(d.Avoided([]string{server.Name})).To(gomega.BeEmpty(), "what an ordinary pod reaches at %s", to)
		}
		gomega.Expect(judge.Resolvers(cluster.Servers, dnsServers(ctx, f, control))).To(gomega.BeEmpty(), "DNS servers of an ordinary pod, on node %s", control.Spec.NodeName)
	})
})

// clusterDNS asks a kubelet for the cluster DNS that it gives to pods.
func clusterDNS(ctx context.Context, client clientset.Interface, node *v1.Node) *judge.ClusterDNS {
	ginkgo.GinkgoHelper()
	said, err := client.CoreV1().RESTClient().Get().Resource("nodes").Name(node.Name).SubResource("proxy").Suffix("configz").Do(ctx).Raw()
	framework.ExpectNoError(err, "asking the kubelet of node %s for its configuration", node.Name)
	dns, err := judge.ReadClusterDNS(said)
	framework.ExpectNoError(err, "the configuration of the kubelet of node %s", node.Name)
	return dns
}

// dnsServers asks a pod of agnhost for the DNS servers that it has.
func dnsServers(ctx context.Context, f *framework.Framework, pod *v1.Pod) []string {
	ginkgo.GinkgoHelper()
	said, problem, err := e2epod.ExecWithOptionsContext(ctx, f, e2epod.ExecOptions{
		Command:   []string{"/agnhost", "dns-server-list"},
		Namespace: pod.Namespace, PodName: pod.Name, ContainerName: pod.Spec.Containers[0].Name,
		CaptureStdout: true, CaptureStderr: true, Quiet: true,
	})
	framework.ExpectNoError(err, "asking pod %s for its DNS servers: %s", pod.Name, problem)
	return strings.FieldsFunc(said, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
}
