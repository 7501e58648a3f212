package suite

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/test/e2e/framework"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

// servicePort is where a Service answers, but for its NodePort.
const servicePort = 80

// serve makes a Service of pods of netexec: of those with the label app and by HTTP, where
// the specification says nothing else.
func serve(ctx context.Context, f *framework.Framework, namespace, name, app string, spec v1.ServiceSpec) *v1.Service {
	ginkgo.GinkgoHelper()
	if spec.Selector == nil {
		spec.Selector = map[string]string{"app": app}
	}
	if spec.Ports == nil {
		spec.Ports = []v1.ServicePort{{Port: servicePort, TargetPort: intstr.FromInt32(netexecPort)}}
	}
	made, err := f.ClientSet.CoreV1().Services(namespace).Create(ctx,
		&v1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		framework.Failf("the cluster's admission refuses Service %s, without which the test cannot be run: %v", name, err)
	}
	framework.ExpectNoError(err, "creating Service %s", name)
	return made
}

// clusterIP returns where a Service answers in the cluster.
func clusterIP(s *v1.Service) address {
	return address{host: s.Spec.ClusterIP, port: s.Spec.Ports[0].Port}
}

// nodePorts are the nodes at which a NodePort Service is to answer.
type nodePorts struct {
	nodes       []v1.Node
	measuredOwn bool
}

// nodesWithPorts returns the nodes of the systems that take ordinary pods.
func nodesWithPorts(systems ...*system) *nodePorts {
	ginkgo.GinkgoHelper()
	var all []v1.Node
	for _, s := range systems {
		all = append(all, s.nodes...)
	}
	p := &nodePorts{nodes: untainted(all)}
	if len(p.nodes) == 0 {
		framework.Failf("all of %d nodes have taints that keep ordinary pods away: there is no NodePort to connect to", len(all))
	}
	for i := range p.nodes {
		if internalIP(&p.nodes[i]) == "" {
			framework.Failf("node %s has no InternalIP at which its NodePort could be reached", p.nodes[i].Name)
		}
	}
	return p
}

// at returns the name of the node with an address.
func (p *nodePorts) at(a address) string {
	for i := range p.nodes {
		if internalIP(&p.nodes[i]) == a.host {
			return p.nodes[i].Name
		}
	}
	return ""
}

// of returns where the Service answers a pod. What a Windows node's own NodePort answers
// its own pods is recorded, once.
func (p *nodePorts) of(ctx context.Context, f *framework.Framework, s *v1.Service, from *v1.Pod) []address {
	var all []address
	for i := range p.nodes {
		node := &p.nodes[i]
		to := address{host: internalIP(node), port: s.Spec.Ports[0].NodePort}
		if node.Name != from.Spec.NodeName || node.Labels[v1.LabelOSStable] != string(v1.Windows) {
			all = append(all, to)
			continue
		}
		if !p.measuredOwn {
			p.measuredOwn = true
			d, err := dial(ctx, f, from, to.host, to.port, 1)
			measuredOwnNodePort(node, "a pod of it", "http", d, err)
		}
	}
	return all
}

// measuredOwnNodePort records whether a Windows node's own NodePort answers there. It
// need not: https://kubernetes.io/docs/concepts/services-networking/windows-networking/#limitations
func measuredOwnNodePort(node *v1.Node, from, protocol string, d *judge.Dialled, err error) {
	measured(fmt.Sprintf("own NodePort of node %s (%s) answers %s", node.Name, strings.ToUpper(protocol), from), err == nil && d.Failed == 0)
}
