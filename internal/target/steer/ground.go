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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
)

// Member is the process that steers: one shard of a run.
type Member struct {
	RunID string
	// ID is one that no other process ever has.
	ID string
	// Dead are the IDs of earlier processes of this shard.
	Dead []string
	// Peers returns the IDs of the run's other processes that live; nil where
	// there can be none.
	Peers func(context.Context) ([]string, error)
	// Unlocked says that other runs may be at work on the cluster.
	Unlocked bool
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
// is of other runs, cordons of other conditions, and what earlier processes of this
// shard left. What is this process's own goes where keepOwn is not set. Where
// policies may not be seen, blind is called with the error; it may make it none.
func (g *ground) clear(ctx context.Context, c result.RunConditions, keepOwn bool, blind func(error) error) error {
	gone := func(string) bool { return true }
	if g.member.Unlocked {
		gone = g.member.gone(ctx)
	}
	living := func(m mark) *mark {
		if m.Run != g.member.RunID {
			return m.without(gone)
		}
		return m.without(func(id string) bool { return g.member.self(id) && (!keepOwn || id != g.member.ID) })
	}
	if err := g.removePolicies(ctx, living); err != nil {
		if err = blind(err); err != nil {
			return err
		}
	}
	restored, err := g.uncordon(ctx, func(m mark) *mark {
		if m.Run == g.member.RunID && !m.of(m.Run, c) {
			return nil
		}
		return living(m)
	})
	if err != nil {
		return err
	}
	if err := g.awaitTaint(ctx, restored, false); err != nil || g.tidied {
		return err
	}
	err = g.removeNamespaces(ctx, living)
	g.tidied = err == nil
	return err
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
		failed = leftBehind(err)
	}
	_, err := g.uncordon(ctx, needed)
	return errors.Join(failed, err, g.removeNamespaces(ctx, needed))
}

// leftBehind adds to an error what becomes of policies that could not be removed.
func leftBehind(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; the next run removes what is left of the steering policies, or: kubectl delete %s,%s -l %s", err, bindings, policies, label)
}

// removePolicies removes the policies of whose mark nothing is needed any more. They
// select namespaces of processes that have ended: nobody waits for them to be gone.
func (g *ground) removePolicies(ctx context.Context, needed func(mark) *mark) error {
	if g.version == "" {
		return nil
	}
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
			if needed(readMark(item.GetAnnotations()[annotation])) != nil {
				continue
			}
			uid := item.GetUID()
			if err := g.delete(ctx, resource, item.GetName(), &uid); err != nil {
				return err
			}
		}
	}
	return nil
}

// delete removes an object; with a uid just the one that was seen, and no other that has
// its name by now.
func (g *ground) delete(ctx context.Context, resource, name string, uid *types.UID) error {
	options := metav1.DeleteOptions{}
	if uid != nil {
		options.Preconditions = &metav1.Preconditions{UID: uid}
	}
	err := cluster.Persist(ctx, func(ctx context.Context) error {
		return g.resource(resource).Delete(ctx, name, options)
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("removing steering %s %s: %w", resource, name, err)
	}
	return nil
}

// removeNamespaces removes those in which processes ask whether steering works, where
// nothing of their mark is needed any more.
func (g *ground) removeNamespaces(ctx context.Context, needed func(mark) *mark) error {
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
		if needed(readMark(ns.Annotations[annotation])) != nil {
			continue
		}
		if err := g.deleteNamespace(ctx, ns.Name); err != nil {
			return fmt.Errorf("removing namespace %s, in which steering was tried: %w", ns.Name, err)
		}
	}
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

// makeNamespace makes a namespace in which the cluster can be asked what it would do
// with a pod.
func (g *ground) makeNamespace(ctx context.Context) (*corev1.Namespace, error) {
	name := prefix + randomPart()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{runLabel: name, label: labelValue(g.member.RunID)},
		Annotations: map[string]string{annotation: mark{Run: g.member.RunID, Members: []string{g.member.ID}}.String()},
	}}
	err := cluster.Persist(ctx, func(ctx context.Context) error {
		_, err := g.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		return err
	})
	// By its name it is ours: then the answer to an earlier try was lost.
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("making a namespace to see whether steering works: %w", err)
	}
	return namespace, nil
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
