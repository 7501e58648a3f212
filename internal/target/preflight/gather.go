package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/lease"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight/probe"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/steer"
)

const (
	// steeringLabel is what package steer puts on all that it makes.
	steeringLabel = "op-readiness/steering"
	// gmsaNodeLabel is by what the gMSA tests find their node.
	gmsaNodeLabel, gmsaNodeValue = "agentpool", "windowsgmsa"
)

// GatherForRun reads no more than what [Facts.ForRun] needs. What cannot be read
// is an error in its place; an error of its own says that the API server does
// not answer, or does not know the user, so that nothing could be read. A server
// that answers, and fails now and then, is asked again ([cluster.Persist]).
func GatherForRun(ctx context.Context, c *cluster.Cluster) (*Facts, error) {
	return persist(ctx, c, gatherForRun)
}

// Gather reads all that can be read of a cluster, with the errors of
// [GatherForRun]. It makes nothing but access reviews.
func Gather(ctx context.Context, c *cluster.Cluster) (*Facts, error) {
	return persist(ctx, c, gather)
}

// persist reads facts until none is missing because the API server was away.
func persist(ctx context.Context, c *cluster.Cluster, read func(context.Context, *cluster.Cluster) (*Facts, error)) (f *Facts, err error) {
	_ = cluster.Persist(ctx, func(context.Context) error { // in the facts, too
		f, err = read(ctx, c)
		if err == nil {
			return f.outage()
		}
		return nil
	})
	return f, err
}

// outage returns an error of a request that failed because the server was away.
func (f *Facts) outage() error {
	for _, err := range []error{
		f.Version.Err, f.Nodes.Err, f.APIGroups.Err, f.DaemonSets.Err, f.GMSAWebhooks.Err, f.RuntimeClasses.Err, f.Families.Err, f.DNS.Err,
		f.Missing.Err, f.Steering.Err, f.Namespaces.Err, f.Policies.Err, f.ProbeNamespaces.Err, f.Held.Err,
	} {
		if cluster.Away(err) {
			return err
		}
	}
	return nil
}

func gatherForRun(ctx context.Context, c *cluster.Cluster) (*Facts, error) {
	f := &Facts{Now: time.Now().UTC()}
	f.Version = read(c.ServerVersion(ctx))
	var status apierrors.APIStatus
	if err := f.Version.Err; err != nil && (!errors.As(err, &status) || apierrors.IsUnauthorized(err)) {
		return nil, err
	}
	f.Nodes = read(nodes(ctx, c))
	f.APIGroups = read(c.APIGroups())
	f.RuntimeClasses = read(runtimeClasses(ctx, c.Client()))
	return f, ctx.Err()
}

func gather(ctx context.Context, c *cluster.Cluster) (*Facts, error) {
	f, err := gatherForRun(ctx, c)
	if err != nil {
		return nil, err
	}
	client := c.Client()
	f.DaemonSets = read(daemonSets(ctx, client))
	f.GMSAWebhooks = read(gmsaWebhooks(ctx, client))
	f.Families = read(families(ctx, client))
	f.DNS = read(dns(ctx, client))
	f.Steering = read(steering(ctx, c))
	f.Missing = read(missing(ctx, client, f.Steering.Err != nil || f.Steering.Value != ""))
	f.Namespaces = read(namespaces(ctx, client, cluster.SuiteLabel))
	f.ProbeNamespaces = read(namespaces(ctx, client, probe.Label))
	f.Policies = read(steeringPolicies(ctx, c))
	f.Held = read(lease.Peek(ctx, client))
	return f, ctx.Err()
}

func nodes(ctx context.Context, c *cluster.Cluster) ([]Node, error) {
	list, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Node, 0, len(list))
	for i := range list {
		n := &list[i]
		_, cordoned := n.Annotations[cluster.CordonAnnotation]
		all = append(all, Node{
			Node:          cluster.NodeFacts(n),
			Capacity:      n.Status.Capacity.Memory().Value(),
			Allocatable:   n.Status.Allocatable.Memory().Value(),
			GMSA:          n.Labels[gmsaNodeLabel] == gmsaNodeValue,
			CordonedByRun: cordoned,
		})
	}
	return all, nil
}

func daemonSets(ctx context.Context, client kubernetes.Interface) ([]DaemonSet, error) {
	list, err := client.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := make([]DaemonSet, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, daemonSet(&list.Items[i]))
	}
	return all, nil
}

func daemonSet(d *appsv1.DaemonSet) DaemonSet {
	out := DaemonSet{Namespace: d.Namespace, Name: d.Name}
	for _, c := range d.Spec.Template.Spec.Containers {
		out.Images = append(out.Images, c.Image)
	}
	return out
}

func gmsaWebhooks(ctx context.Context, client kubernetes.Interface) ([]string, error) {
	names := []string{}
	mutating, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range mutating.Items {
		names = append(names, mutating.Items[i].Name)
	}
	validating, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range validating.Items {
		names = append(names, validating.Items[i].Name)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, "gmsa") })
	slices.Sort(names)
	return slices.Compact(names), nil
}

func runtimeClasses(ctx context.Context, client kubernetes.Interface) (map[string]string, error) {
	list, err := client.NodeV1().RuntimeClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	handlers := map[string]string{}
	for i := range list.Items {
		handlers[list.Items[i].Name] = list.Items[i].Handler
	}
	return handlers, nil
}

func families(ctx context.Context, client kubernetes.Interface) ([]string, error) {
	service, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, family := range service.Spec.IPFamilies {
		names = append(names, string(family))
	}
	return names, nil
}

func dns(ctx context.Context, client kubernetes.Interface) (DNS, error) {
	const name = "kube-dns"
	_, err := client.CoreV1().Services(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return DNS{}, nil
	}
	if err != nil {
		return DNS{}, err
	}
	slicesOf, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + name})
	if err != nil {
		return DNS{}, fmt.Errorf("endpoints of %s: %w", name, err)
	}
	ready := 0
	for i := range slicesOf.Items {
		for _, e := range slicesOf.Items[i].Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready += len(e.Addresses)
			}
		}
	}
	return DNS{Service: true, Ready: ready}, nil
}

func steering(ctx context.Context, c *cluster.Cluster) (string, error) {
	s, err := steer.New(ctx, c.Client(), c.Dynamic(), steer.Member{RunID: "preflight"})
	switch {
	case errors.Is(err, steer.ErrNotServed):
		return "", nil
	case err != nil:
		return "", err
	}
	return s.String(), nil
}

func namespaces(ctx context.Context, client kubernetes.Interface, label string) ([]string, error) {
	list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return nil, err
	}
	names := []string{}
	for i := range list.Items {
		ns := &list.Items[i]
		if ns.Status.Phase != corev1.NamespaceTerminating { // on its way out already
			names = append(names, ns.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func steeringPolicies(ctx context.Context, c *cluster.Cluster) ([]string, error) {
	names := []string{}
	for _, version := range []string{"v1", "v1beta1"} {
		for _, resource := range []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"} {
			list, err := c.Dynamic().Resource(schema.GroupVersionResource{Group: steeringGroup, Version: version, Resource: resource}).
				List(ctx, metav1.ListOptions{LabelSelector: steeringLabel})
			if apierrors.IsNotFound(err) {
				continue // not served in this version
			}
			if err != nil {
				return nil, err
			}
			for _, item := range list.Items {
				names = append(names, resource+"/"+item.GetName())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
