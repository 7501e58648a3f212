package evidence

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
)

// change is what happened to a node.
type change struct {
	at   time.Time // when it was seen
	text string    // "node linux-1 was cordoned"
	by   string    // the field manager, "" where it is not known
}

// newest is what is known of a node.
type newest struct {
	version uint64 // the resourceVersion
	gone    bool
}

// maxChanges is how many changes are kept, the newest ones; maxShown how many of
// them are shown with an attempt.
const (
	maxChanges = 1000
	maxShown   = 10
)

// stripNode keeps of a node what changes are shown of, and who made them. Who
// reports a node's status is of no interest.
func stripNode(obj any) (any, error) {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	out := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: n.Labels,
			ManagedFields: slices.DeleteFunc(slices.Clone(n.ManagedFields), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource != "" }),
		},
		Spec: corev1.NodeSpec{Unschedulable: n.Spec.Unschedulable, Taints: n.Spec.Taints},
	}
	if mark, ok := n.Annotations[cluster.CordonAnnotation]; ok {
		out.Annotations = map[string]string{cluster.CordonAnnotation: mark}
	}
	return out, nil
}

// tellsNodes is what takes the events of nodes.
func (w *Watch) tellsNodes() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if n, ok := obj.(*corev1.Node); ok {
				w.sawNode(n, false)
			}
		},
		UpdateFunc: func(before, after any) {
			was, _ := before.(*corev1.Node)
			is, _ := after.(*corev1.Node)
			if was != nil && is != nil {
				w.sawNode(is, false, differences(was, is)...)
			}
		},
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if n, ok := obj.(*corev1.Node); ok {
				w.sawNode(n, true, deletion(n))
			}
		},
	}
}

// sawNode notes that a node was seen, and what has become of it.
func (w *Watch) sawNode(n *corev1.Node, gone bool, changes ...change) {
	now := w.nodes.saw()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range changes {
		c.at = now
		w.changes = append(w.changes, c)
	}
	if extra := len(w.changes) - maxChanges; extra > 0 {
		w.changes = slices.Delete(w.changes, 0, extra)
	}
	w.newest[n.Name] = newest{version(n.ResourceVersion), gone}
	w.tell()
}

func deletion(n *corev1.Node) change { return change{text: fmt.Sprintf("node %s was deleted", n.Name)} }

// differences are what has changed of a node that pods may depend on, but for
// what op-readiness itself does to steer pods.
func differences(was, is *corev1.Node) []change {
	if was.UID != is.UID {
		return []change{deletion(was)} // and made again
	}
	var out []change
	add := func(text, by string) { out = append(out, change{text: "node " + is.Name + " " + text, by: by}) }
	_, marked := was.Annotations[cluster.CordonAnnotation]
	_, marks := is.Annotations[cluster.CordonAnnotation]
	switch {
	case was.Spec.Unschedulable == is.Spec.Unschedulable, marked != marks:
	case is.Spec.Unschedulable:
		add("was cordoned", manager(is, "f:spec", "f:unschedulable"))
	default:
		add("was uncordoned", "")
	}
	before, after := taints(was), taints(is)
	for _, t := range after {
		if !slices.Contains(before, t) {
			add("was tainted "+t, manager(is, "f:spec", "f:taints"))
		}
	}
	for _, t := range before {
		if !slices.Contains(after, t) {
			add("lost its taint "+t, "")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(is.Labels)) {
		if old, there := was.Labels[key]; !there || old != is.Labels[key] {
			add("was labelled "+key+"="+is.Labels[key], manager(is, "f:metadata", "f:labels", "f:"+key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was.Labels)) {
		if _, there := is.Labels[key]; !there {
			add("lost its label "+key, "")
		}
	}
	return slices.DeleteFunc(out, func(c change) bool { return c.by == cluster.FieldManager })
}

// taints are those of a node but the one that follows its being cordoned.
func taints(n *corev1.Node) []string {
	var out []string
	for _, t := range n.Spec.Taints {
		if t.Key != corev1.TaintNodeUnschedulable {
			out = append(out, t.ToString())
		}
	}
	return out
}

// manager returns who wrote a field of a node last, "" where that is not known.
//
// Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
func manager(n *corev1.Node, field ...string) string {
	var last *metav1.ManagedFieldsEntry
	for i := range n.ManagedFields {
		e := &n.ManagedFields[i]
		if e.FieldsV1 != nil && holds(e.FieldsV1.Raw, field) && (last == nil || last.Time.Before(e.Time)) {
			last = e
		}
	}
	if last == nil {
		return ""
	}
	return last.Manager
}

func holds(fields []byte, path []string) bool {
	if len(path) == 0 {
		return true
	}
	var inner map[string]json.RawMessage
	if json.Unmarshal(fields, &inner) != nil {
		return false
	}
	next, ok := inner[path[0]]
	return ok && holds(next, path[1:])
}

// Changes says what happened since a time to the cluster's nodes and to the
// namespaces of the test of a process that has just ended, that may be why it
// failed; "" for nothing. destroyed are the namespaces that it has destroyed
// itself, and when it began to.
func (w *Watch) Changes(ctx context.Context, suiteRunID string, destroyed map[string]time.Time, since time.Time) string {
	var said []string
	if err := w.awaitNodes(ctx); err != nil {
		said = append(said, behind(w.nodes, err))
	}
	if missed := w.nodes.missed(since); missed != "" {
		said = append(said, missed)
	}
	w.mu.Lock()
	happened := slices.DeleteFunc(slices.Clone(w.changes), func(c change) bool { return c.at.Before(since) })
	for name, homes := range w.homes {
		for _, h := range homes {
			if h.run != suiteRunID || h.gone.IsZero() || h.gone.Before(since) {
				continue
			}
			if at, ok := destroyed[name]; !ok || h.gone.Before(at) {
				happened = append(happened, change{at: h.gone, text: fmt.Sprintf("namespace %s was deleted, before the test had ended", name)})
			}
		}
	}
	w.mu.Unlock()
	slices.SortStableFunc(happened, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.text, b.text)) })
	more := len(happened) - maxShown
	if more > 0 {
		happened = happened[:maxShown]
	}
	for _, c := range happened {
		text := fmt.Sprintf("%s at %s UTC", c.text, c.at.UTC().Format(clock))
		if c.by != "" {
			text += " by " + c.by
		}
		said = append(said, text)
	}
	if more > 0 {
		said = append(said, fmt.Sprintf("and %d more changes", more))
	}
	return strings.Join(said, "; ")
}

// awaitNodes returns when the watch has seen what the nodes are now.
func (w *Watch) awaitNodes(ctx context.Context) error {
	list, err := w.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	versions := map[string]uint64{}
	for _, n := range list.Items {
		versions[n.Name] = version(n.ResourceVersion)
	}
	return w.await(ctx, w.lag, func() bool {
		for name, v := range versions {
			if w.newest[name].version < v {
				return false
			}
		}
		for name, n := range w.newest {
			if _, there := versions[name]; !there && !n.gone && n.version <= version(list.ResourceVersion) {
				return false
			}
		}
		return true
	})
}

// version is a resourceVersion as a number. They are ordered for objects of one
// kind.
//
// Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
func version(text string) uint64 {
	n, _ := strconv.ParseUint(text, 10, 64) // 0 is older than any
	return n
}
