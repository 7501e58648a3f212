package preflight

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"gopkg.in/yaml.v3"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/lease"
)

// Need is a permission that a run takes; in all namespaces, but for [ForLock].
type Need struct {
	APIGroup string `json:"apiGroup"`
	// Resource may name a subresource, as pods/exec.
	Resource string  `json:"resource"`
	Verb     string  `json:"verb"`
	For      Purpose `json:"for"`
}

// Purpose is what a permission is needed for.
type Purpose string

// The purposes; each has a finding of its own.
const (
	ForSuite Purpose = "suite"
	// ForAdditional is only for tests beyond the standard, which never gate.
	ForAdditional Purpose = "additional"
	ForEvidence   Purpose = "evidence"
	ForSteering   Purpose = "steering"
	ForCleanup    Purpose = "cleanup"
	// ForLock is asked for in the namespace of the lock only.
	ForLock Purpose = "lock"
	// ForPreflight is only written into the role: without it, findings are
	// unknown.
	ForPreflight Purpose = "preflight"
)

const steeringGroup = "admissionregistration.k8s.io"

var (
	everything = []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	status     = []string{"get", "patch", "update"}
)

// The suite makes namespaces and nearly everything in them; the verbs are those
// of the tests that the standard selects, and of the framework around them.
var needs = []struct {
	purpose   Purpose
	apiGroup  string
	resources []string
	verbs     []string
}{
	{ForSuite, "", []string{"namespaces", "pods", "services", "configmaps", "secrets", "serviceaccounts", "replicationcontrollers"}, everything},
	{ForSuite, "", []string{"pods/log", "pods/proxy", "services/proxy", "nodes/proxy"}, []string{"get"}},
	{ForSuite, "", []string{"pods/eviction", "serviceaccounts/token"}, []string{"create"}},
	// A WebSocket begins with a GET, which is the verb get.
	{ForSuite, "", []string{"pods/exec"}, []string{"create", "get"}},
	{ForSuite, "", []string{"nodes"}, []string{"get", "list", "patch", "update", "watch"}},
	{ForSuite, "", []string{"endpoints", "events"}, []string{"get", "list", "watch"}},
	{ForSuite, "apps", []string{"daemonsets", "deployments", "replicasets", "statefulsets"}, everything},
	{ForSuite, "batch", []string{"jobs"}, everything},
	{ForSuite, "discovery.k8s.io", []string{"endpointslices"}, everything},
	{ForSuite, "networking.k8s.io", []string{"networkpolicies"}, everything},
	{ForSuite, "node.k8s.io", []string{"runtimeclasses"}, []string{"get", "list"}},
	{ForSuite, "authorization.k8s.io", []string{"subjectaccessreviews"}, []string{"create"}},
	{ForSuite, rbacv1.GroupName, []string{"clusterroles"}, []string{"bind", "create", "delete", "get"}},
	{ForSuite, rbacv1.GroupName, []string{"clusterrolebindings", "rolebindings"}, []string{"create", "delete", "get"}},
	{ForAdditional, "", []string{"persistentvolumeclaims"}, everything},
	{ForAdditional, "", []string{"persistentvolumes"}, []string{"list"}},
	{ForAdditional, "", []string{"namespaces/status", "nodes/status", "pods/status", "services/status"}, status},
	{ForAdditional, "apps", []string{"daemonsets/status", "deployments/scale", "deployments/status", "replicasets/scale", "replicasets/status", "statefulsets/scale", "statefulsets/status"}, status},
	{ForAdditional, "apps", []string{"daemonsets", "deployments", "replicasets", "statefulsets"}, []string{"deletecollection"}},
	{ForAdditional, "", []string{"pods", "services"}, []string{"deletecollection"}},
	{ForAdditional, "apps", []string{"controllerrevisions"}, everything},
	{ForAdditional, "autoscaling", []string{"horizontalpodautoscalers"}, everything},
	{ForAdditional, "batch", []string{"cronjobs"}, everything},
	{ForAdditional, "policy", []string{"poddisruptionbudgets"}, everything},
	{ForAdditional, "policy", []string{"poddisruptionbudgets/status"}, status},
	{ForAdditional, "scheduling.k8s.io", []string{"priorityclasses"}, everything},
	{ForEvidence, "", []string{"pods"}, []string{"create", "delete", "list", "watch"}},
	{ForEvidence, "", []string{"namespaces"}, []string{"list", "watch"}},
	{ForEvidence, "", []string{"nodes"}, []string{"get", "list", "watch"}},
	{ForSteering, steeringGroup, []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}, []string{"create", "delete", "get", "list"}},
	{ForSteering, "", []string{"namespaces"}, []string{"create", "delete", "list"}},
	{ForSteering, "", []string{"nodes"}, []string{"list"}},
	{ForSteering, "", []string{"pods"}, []string{"create"}},
	{ForCleanup, "", []string{"namespaces"}, []string{"delete", "list"}},
	{ForPreflight, steeringGroup, []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, []string{"list"}},
}

// allNeeds returns what a run may have to do, by purpose.
func allNeeds() []Need {
	var all []Need
	for _, n := range needs {
		for _, resource := range n.resources {
			for _, verb := range n.verbs {
				all = append(all, Need{APIGroup: n.apiGroup, Resource: resource, Verb: verb, For: n.purpose})
			}
		}
	}
	lock := lease.Rule()
	slices.Sort(lock.Verbs)
	for _, verb := range lock.Verbs {
		all = append(all, Need{APIGroup: lock.APIGroups[0], Resource: lock.Resources[0], Verb: verb, For: ForLock})
	}
	return all
}

// missing asks the API server which needs the user may not do.
func missing(ctx context.Context, client kubernetes.Interface, steering bool) ([]Need, error) {
	allowed := func(ctx context.Context, namespace, apiGroup, resource, verb string) (bool, error) {
		resource, subresource, _ := strings.Cut(resource, "/")
		review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Group: apiGroup, Resource: resource, Subresource: subresource, Verb: verb,
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("asking for permission to %s %s: %w", verb, resource, err)
		}
		if !review.Status.Allowed && review.Status.EvaluationError != "" {
			return false, fmt.Errorf("asking for permission to %s %s: %s", verb, resource, review.Status.EvaluationError)
		}
		return review.Status.Allowed, nil
	}
	// An administrator needs one question.
	if all, err := allowed(ctx, metav1.NamespaceAll, "*", "*", "*"); err != nil || all {
		return nil, err
	}
	questions := slices.DeleteFunc(allNeeds(), func(n Need) bool {
		return n.For == ForPreflight || n.For == ForSteering && !steering
	})
	answers := make([]bool, len(questions))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i, q := range questions {
		group.Go(func() error {
			namespace := metav1.NamespaceAll
			if q.For == ForLock {
				namespace = lease.Namespace
			}
			var err error
			answers[i], err = allowed(ctx, namespace, q.APIGroup, q.Resource, q.Verb)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	lacking := []Need{}
	for i, q := range questions {
		if !answers[i] {
			lacking = append(lacking, q)
		}
	}
	return lacking, nil
}

// describe names permissions, verbs gathered by resource.
func describe(needs []Need) string {
	byResource := map[string][]string{}
	var order []string
	for _, n := range needs {
		name := n.Resource
		if n.APIGroup != "" {
			name += "." + n.APIGroup
		}
		if byResource[name] == nil {
			order = append(order, name)
		}
		byResource[name] = append(byResource[name], n.Verb)
	}
	for i, name := range order {
		order[i] = strings.Join(byResource[name], "/") + " " + name
	}
	const most = 8
	if len(order) > most {
		return fmt.Sprintf("such as %s; op-readiness preflight --print-rbac prints the role", strings.Join(order[:3], ", "))
	}
	return strings.Join(order, ", ")
}

// role and rule are a ClusterRole, as far as it is written.
type role struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	Rules []rule `yaml:"rules"`
}

type rule struct {
	APIGroups []string `yaml:"apiGroups,flow"`
	Resources []string `yaml:"resources,flow"`
	Verbs     []string `yaml:"verbs,flow"`
}

// WriteRole writes, as YAML, the role of someone who may run the tests.
func WriteRole(w io.Writer) error {
	type key struct{ apiGroup, resource string }
	verbs := map[key][]string{}
	for _, n := range allNeeds() {
		k := key{n.APIGroup, n.Resource}
		verbs[k] = append(verbs[k], n.Verb)
	}
	rules := map[string]*rule{}
	for k, v := range verbs {
		slices.Sort(v)
		v = slices.Compact(v)
		id := k.apiGroup + " " + strings.Join(v, ",")
		if rules[id] == nil {
			rules[id] = &rule{APIGroups: []string{k.apiGroup}, Verbs: v}
		}
		rules[id].Resources = append(rules[id].Resources, k.resource)
	}
	r := role{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}
	r.Metadata.Name = "op-readiness"
	for _, rule := range rules {
		slices.Sort(rule.Resources)
		r.Rules = append(r.Rules, *rule)
	}
	slices.SortFunc(r.Rules, func(a, b rule) int {
		return cmp.Or(cmp.Compare(a.APIGroups[0], b.APIGroups[0]), cmp.Compare(a.Resources[0], b.Resources[0]))
	})
	text, err := yaml.Marshal(r)
	if err != nil {
		return fmt.Errorf("writing the role: %w", err)
	}
	_, err = fmt.Fprintf(w, `# What a run needs. Tests bind cluster roles to their own service accounts, so
# whoever has this role can become cluster-admin: use it where that is fine.
# Tests of gMSA that install their own webhook need cluster-admin itself.
%s`, text)
	return err
}
