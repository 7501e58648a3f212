package steer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
)

// Member is the process that steers: one shard of a run.
type Member struct {
	RunID string
	// Shard is from 1.
	Shard int
	// ID is one that no other process ever has.
	ID string
	// Dead are the IDs of earlier processes of this shard.
	Dead []string
	// Peers returns the IDs of the run's other processes that live; nil where
	// there can be none.
	Peers func(context.Context) ([]string, error)
	// Note is told what is worth a line; it may be nil.
	Note func(text string)
}

// self reports whether an ID is this process's, or an earlier one's of its
// shard.
func (m *Member) self(id string) bool { return id == m.ID || slices.Contains(m.Dead, id) }

// gone returns which IDs need nothing any more once this process is gone, too.
func (m *Member) gone(ctx context.Context) func(id string) bool {
	if m.Peers == nil {
		return func(string) bool { return true }
	}
	living, err := m.Peers(ctx)
	if err != nil {
		return m.self // nobody else's fate is known
	}
	return func(id string) bool { return m.self(id) || !slices.Contains(living, id) }
}

// ground is what all ways of steering have in common: the cluster, and what
// others have left there.
type ground struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	// version is that of the API of policies; "" where it is not served.
	version string
	member  Member
	tidied  bool
}

func newGround(ctx context.Context, client kubernetes.Interface, dyn dynamic.Interface, m Member) (*ground, error) {
	if m.Note == nil {
		m.Note = func(string) {}
	}
	g := &ground{client: client, dynamic: dyn, member: m}
	for _, version := range []string{"v1", "v1beta1"} {
		var list *metav1.APIResourceList
		err := cluster.Persist(ctx, func(context.Context) (err error) {
			list, err = client.Discovery().ServerResourcesForGroupVersion(group + "/" + version)
			return err
		})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("asking for MutatingAdmissionPolicy: %w", err)
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == policies }) {
			g.version = version
			break
		}
	}
	return g, nil
}

func (g *ground) resource(name string) dynamic.ResourceInterface {
	return g.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: g.version, Resource: name})
}

// clear takes away what nobody needs who works under the conditions: all that
// is of other runs and of other conditions, and what earlier processes of this
// shard left. What is this process's own goes where keepOwn is not set. Where
// policies may not be seen, blind is called with the error; it may make it none.
func (g *ground) clear(ctx context.Context, c result.RunConditions, keepOwn bool, blind func(error) error) error {
	needed := func(m mark) *mark {
		if !m.of(g.member.RunID, c) {
			return nil
		}
		return m.without(func(id string) bool { return g.member.self(id) && (!keepOwn || id != g.member.ID) })
	}
	if err := g.removePolicies(ctx, needed); err != nil {
		if err = blind(err); err != nil {
			return err
		}
	}
	restored, err := g.uncordon(ctx, needed)
	if err != nil {
		return err
	}
	if err := g.awaitTaint(ctx, restored, false); err != nil {
		return err
	}
	return g.tidy(ctx)
}

// Remove takes away what this process has put into force, and what processes of
// its run have that are dead.
func (g *ground) Remove(ctx context.Context) error {
	gone := g.member.gone(ctx)
	needed := func(m mark) *mark {
		if m.Run != g.member.RunID {
			return &m
		}
		return m.without(gone)
	}
	var failed error
	if err := g.removePolicies(ctx, needed); err != nil && !apierrors.IsForbidden(err) {
		failed = fmt.Errorf("%w; the next run removes what is left of the steering policy, or: kubectl delete %s,%s -l %s", err, bindings, policies, label)
	}
	_, err := g.uncordon(ctx, needed)
	return errors.Join(failed, err)
}

// removePolicies removes the policies of whose mark nothing is needed any more,
// and waits until the API server heeds them no longer.
func (g *ground) removePolicies(ctx context.Context, needed func(mark) *mark) error {
	if g.version == "" {
		return nil
	}
	var tokens []string
	removed := false
	for _, resource := range []string{bindings, policies} {
		var list *unstructured.UnstructuredList
		err := cluster.Persist(ctx, func(ctx context.Context) (err error) {
			list, err = g.resource(resource).List(ctx, metav1.ListOptions{LabelSelector: label})
			return err
		})
		if err != nil {
			return fmt.Errorf("looking for steering policies: %w", err)
		}
		for i := range list.Items {
			item := &list.Items[i]
			m := readMark(item.GetAnnotations()[annotation])
			if needed(m) != nil {
				continue
			}
			if err := g.delete(ctx, resource, item); err != nil {
				return err
			}
			removed = true
			if m.Token != "" {
				tokens = append(tokens, m.Token)
			}
		}
	}
	if !removed {
		return nil
	}
	return g.awaitAnswer(ctx, func(answer []string) bool {
		return !slices.ContainsFunc(answer, func(token string) bool {
			return slices.Contains(tokens, token) || token == formerToken
		})
	})
}

// delete removes just the object that was seen, and no other that has its name
// by now.
func (g *ground) delete(ctx context.Context, resource string, item *unstructured.Unstructured) error {
	uid := item.GetUID()
	err := cluster.Persist(ctx, func(ctx context.Context) error {
		return g.resource(resource).Delete(ctx, item.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("removing steering %s %s: %w", resource, item.GetName(), err)
	}
	return nil
}

// tidy removes, once, the namespaces that a process left that was killed while it
// asked whether steering works.
func (g *ground) tidy(ctx context.Context) error {
	if g.tidied {
		return nil
	}
	var list *corev1.NamespaceList
	err := cluster.Persist(ctx, func(ctx context.Context) (err error) {
		list, err = g.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: label})
		return err
	})
	if err != nil {
		return fmt.Errorf("looking for what a killed run left: %w", err)
	}
	for i := range list.Items {
		ns := &list.Items[i]
		if readMark(ns.Annotations[annotation]).Run == g.member.RunID {
			continue // a peer may be asking
		}
		if err := g.deleteNamespace(ctx, ns.Name); err != nil {
			return fmt.Errorf("removing namespace %s, which a killed run left: %w", ns.Name, err)
		}
	}
	g.tidied = true
	return nil
}

// deleteNamespace begins to remove a namespace that may be gone already.
func (g *ground) deleteNamespace(ctx context.Context, name string) error {
	err := cluster.Persist(ctx, func(ctx context.Context) error {
		return g.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// probing makes a namespace in which the cluster can be asked what it would do
// with a pod, calls ask, and removes it.
func (g *ground) probing(ctx context.Context, ask func(ctx context.Context, namespace string) error) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:        name + "-" + randomPart(),
		Labels:      map[string]string{"e2e-run": name, label: labelValue(g.member.RunID)},
		Annotations: map[string]string{annotation: mark{Run: g.member.RunID, Members: []string{g.member.ID}}.String()},
	}}
	err := cluster.Persist(ctx, func(ctx context.Context) error {
		_, err := g.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		return err
	})
	// By its name it is ours: then the answer to an earlier try was lost.
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making a namespace to see whether steering works: %w", err)
	}
	defer func() {
		ctx := ctx
		if ctx.Err() != nil {
			// Even now, without using up the time of what comes next.
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
		}
		_ = g.deleteNamespace(ctx, namespace.Name) // the next run does it, else
	}()
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	return ask(ctx, namespace.Name)
}

// randomPart is for names and tokens that nobody else ever has.
func randomPart() string { return strings.ToLower(rand.Text()[:8]) }

// effectTimeout is how long the cluster may take to heed what was put into force.
// The API server compiles policies from a watch, within about a second.
const effectTimeout = time.Minute

// labelValue is the run's id where that can be the value of a label: it is for
// people, and the mark says the same exactly.
func labelValue(runID string) string {
	if len(validation.IsValidLabelValue(runID)) > 0 {
		return "run"
	}
	return runID
}

// probePod is a pod that never runs, and that the strictest cluster lets in.
func probePod() *corev1.Pod { return cluster.RestrictedPod("probe", "probe") }

// None steers nothing. It takes away what killed runs left, which would steer
// the pods of this one.
type None struct{ *ground }

// NewNone returns the way of not steering.
func NewNone(ctx context.Context, client kubernetes.Interface, dyn dynamic.Interface, m Member) (*None, error) {
	g, err := newGround(ctx, client, dyn, m)
	if err != nil {
		return nil, err
	}
	return &None{g}, nil
}

// Apply takes away what killed runs left. It puts nothing into force: any
// conditions are an error.
func (n *None) Apply(ctx context.Context, c result.RunConditions) error {
	if c != (result.RunConditions{}) {
		return errors.New("nothing steers pods in this run")
	}
	return n.clear(ctx, c, false, n.unseen)
}

// unseen is for those who need no policies: that they may not look for any is
// worth a line.
func (g *ground) unseen(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	if !g.tidied {
		g.member.Note(fmt.Sprintf("warning: a steering policy that a killed run left would go unseen: %v", err))
	}
	return nil
}
