package evidence

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// home is a namespace that was seen. What was deleted stays: pods are asked for
// when their namespace is gone. One after the other, several may have one name.
type home struct {
	uid  types.UID
	made time.Time
	run  string    // the run id that its label names; "" for none
	gone time.Time // when its deletion was seen
}

// stripNamespace keeps of a namespace what tells whose it is.
func stripNamespace(obj any) (any, error) {
	ns, ok := obj.(*corev1.Namespace)
	if !ok {
		return obj, nil
	}
	out := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name, UID: ns.UID, ResourceVersion: ns.ResourceVersion, CreationTimestamp: ns.CreationTimestamp, DeletionTimestamp: ns.DeletionTimestamp}}
	if run := ns.Labels[cluster.SuiteLabel]; run != "" {
		out.Labels = map[string]string{cluster.SuiteLabel: run}
	}
	return out, nil
}

// tellsNamespaces is what takes the events of namespaces.
func (w *Watch) tellsNamespaces() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.house(obj, false) },
		UpdateFunc: func(_, obj any) { w.house(obj, false) },
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			w.house(obj, true) // a watch may tell of it for the first time
		},
	}
}

// house notes a namespace. The first run id that it carried stays: tests change
// the labels of their namespaces.
func (w *Watch) house(obj any, gone bool) {
	ns, ok := obj.(*corev1.Namespace)
	if !ok {
		return
	}
	now := w.namespaces.saw()
	w.mu.Lock()
	defer w.mu.Unlock()
	homes := w.homes[ns.Name]
	i := slices.IndexFunc(homes, func(h home) bool { return h.uid == ns.UID })
	if i < 0 {
		i = len(homes)
		homes = append(homes, home{uid: ns.UID, made: ns.CreationTimestamp.Time})
		w.homes[ns.Name] = homes
	}
	homes[i].run = cmp.Or(homes[i].run, ns.Labels[cluster.SuiteLabel])
	if homes[i].gone.IsZero() && (gone || ns.DeletionTimestamp != nil) {
		homes[i].gone = now
	}
	w.tell()
}

// tell wakes who waits for something to be seen; the caller holds the lock.
func (w *Watch) tell() {
	close(w.told)
	w.told = make(chan struct{})
}

// whose tells whether a pod that was made at that time, in a namespace of that
// name, can be of a process whose run id is ours, and whether it can be of
// somebody else. The API server tells times to the second, so that it may be both.
// The caller holds the lock.
func (w *Watch) whose(namespace string, made time.Time, own func(run string) bool) (ours, others bool) {
	homes := w.homes[namespace]
	for i, h := range homes {
		before := i > 0 && made.Before(h.made)
		after := i+1 < len(homes) && homes[i+1].made.Before(made)
		if before || after {
			continue
		}
		if own(h.run) {
			ours = true
		} else {
			others = true
		}
	}
	return ours, others
}

// await waits until known holds, and no longer than patience. known is called with
// the lock.
func (w *Watch) await(ctx context.Context, patience time.Duration, known func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it was not there after %v", patience))
	defer cancel()
	for {
		w.mu.Lock()
		ok, changed := known(), w.told
		w.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// claim waits until it is known of the namespaces that they carry the run id, and
// says of which it is not.
func (w *Watch) claim(ctx context.Context, patience time.Duration, namespaces []string, run string) []string {
	var foreign []string
	err := w.await(ctx, patience, func() bool {
		foreign = foreign[:0]
		for _, ns := range namespaces {
			if !slices.ContainsFunc(w.homes[ns], func(h home) bool { return h.run == run }) {
				foreign = append(foreign, ns)
			}
		}
		return len(foreign) == 0
	})
	if err == nil {
		return nil
	}
	if ctx.Err() != nil || w.namespaces.trying() != nil {
		return []string{behind(w.namespaces, err)}
	}
	return []string{fmt.Sprintf("its output names namespaces that were not seen with its process's run id (label %s=%s), and whose pods were not taken: %s", cluster.SuiteLabel, run, text.Few(foreign, 3))}
}

// homesOf returns the names of the namespaces of a run, once those of all pods
// that were seen are known, and says where they are not.
func (w *Watch) homesOf(ctx context.Context, patience time.Duration, run string) (names, unobserved []string) {
	err := w.await(ctx, patience, func() bool {
		for ns := range w.seen {
			if len(w.homes[ns]) == 0 {
				return false
			}
		}
		return true
	})
	if err != nil {
		unobserved = append(unobserved, behind(w.namespaces, err))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for ns, homes := range w.homes {
		if slices.ContainsFunc(homes, func(h home) bool { return h.run == run }) {
			names = append(names, ns)
		}
	}
	return names, unobserved
}

// keep is for how long is kept what is not known to be of this run: by then the
// watch on namespaces has caught up, and a process has told its run id, which it
// does before its first test.
const keep = time.Minute

// Own tells that a process of this run has that run id. The pods of all others are
// let go.
func (w *Watch) Own(suiteRunID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.own[suiteRunID] = true
}

// sweep lets go of others' pods, and of others' namespaces that are gone; the
// caller holds the lock. It does so once in a while.
func (w *Watch) sweep(now time.Time) {
	if now.Sub(w.swept) < w.keep || w.namespaces.trying() != nil {
		return
	}
	w.swept = now
	own := func(run string) bool { return w.own[run] }
	for ns, pods := range w.seen {
		for uid, seen := range pods {
			ours, others := w.whose(ns, seen.made, own)
			// Whose a pod was that is gone, and whose namespace was not seen, nobody
			// will know.
			if now.Sub(seen.first) < w.keep || ours || !others && !seen.deleted {
				continue
			}
			if !seen.deleted {
				w.settled[uid] = true
			}
			delete(pods, uid)
		}
		if len(pods) == 0 {
			delete(w.seen, ns)
		}
	}
	for name, homes := range w.homes {
		if w.seen[name] != nil {
			continue
		}
		homes = slices.DeleteFunc(homes, func(h home) bool { return !own(h.run) && !h.gone.IsZero() && now.Sub(h.gone) >= w.keep })
		if w.homes[name] = homes; len(homes) == 0 {
			delete(w.homes, name)
		}
	}
}
