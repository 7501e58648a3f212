package evidence

import (
	"context"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// watchTimeout is when the API server ends a watch, to be taken up again: no
// connection that died unnoticed stays for longer.
const watchTimeout = 5 * time.Minute

// lists is what the informer lists and watches with.
//
// An informer by itself is content with what there is: after some failures of
// a watch it lists again and says nothing, and a pod that was made and deleted
// in between is lost. So a watch that ends is taken up at the very event where
// it was, for as long as the API server can do that, and every list but the
// first is noted as a gap.
func (w *Watch) lists(ctx context.Context) cache.ListerWatcher {
	pods := w.client.CoreV1().Pods(metav1.NamespaceAll)
	return &cache.ListWatch{
		ListFunc: func(o metav1.ListOptions) (runtime.Object, error) {
			list, err := pods.List(ctx, o)
			if err == nil {
				w.listed()
			}
			return list, err
		},
		WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) {
			r := &resumed{open: func(o metav1.ListOptions) (watch.Interface, error) {
				seconds := int64(watchTimeout.Seconds())
				o.TimeoutSeconds = &seconds
				return pods.Watch(ctx, o)
			}, note: w.trouble}
			// The first one is opened here, so that its error is the informer's.
			first, err := r.open(o)
			if err != nil {
				return nil, err
			}
			w.watching()
			r.first = first
			again, err := watchtools.NewRetryWatcher(o.ResourceVersion, r)
			if err != nil {
				first.Stop()
				return nil, fmt.Errorf("watching pods from %q: %w", o.ResourceVersion, err)
			}
			return again, nil
		},
	}
}

// resumed gives a [watchtools.RetryWatcher] its watches: one that is open
// already, and then new ones. It is used by one goroutine.
type resumed struct {
	first watch.Interface
	open  func(metav1.ListOptions) (watch.Interface, error)
	note  func(error)
}

// Watch implements [cache.Watcher].
func (r *resumed) Watch(o metav1.ListOptions) (watch.Interface, error) {
	if first := r.first; first != nil {
		r.first = nil
		return first, nil
	}
	again, err := r.open(o)
	r.note(err)
	switch {
	case apierrors.IsGone(err), apierrors.IsResourceExpired(err):
		// As an event it ends the watch; as an error it would be tried for ever.
		events := make(chan watch.Event, 1)
		events <- watch.Event{Type: watch.Error, Object: &metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410, Message: err.Error(),
		}}
		return watch.NewProxyWatcher(events), nil
	case err != nil:
		return nil, io.EOF // RetryWatcher tries again, and logs nothing
	}
	return again, nil
}

// gap is a time in which pods may have come and gone unseen.
type gap struct {
	from, to time.Time
	why      string
}

func (g gap) String() string {
	const clock = "15:04:05"
	return fmt.Sprintf("pods that came and went between %s and %s UTC were not seen: %s", g.from.UTC().Format(clock), g.to.UTC().Format(clock), g.why)
}

// expired is why the informer lists anew when nothing else is known.
const expired = "the watch on pods broke, and the API server had not kept what happened since"

// listed notes that the pods were listed. All but the first list come after
// events that nobody will see any more.
func (w *Watch) listed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listedOnce {
		why := expired
		if w.failure != nil {
			why = w.failure.Error()
		}
		w.gap = gap{from: w.newest, to: time.Now(), why: why}
	}
	w.listedOnce, w.newest, w.failure = true, time.Now(), nil
}

// watching notes that a watch was opened.
func (w *Watch) watching() {
	w.beginOnce.Do(func() { close(w.begun) })
}

// trouble notes that a watch could not be taken up again, nil that it could.
func (w *Watch) trouble(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failure = err
}

// broke is told what kept the informer from listing or watching; it tries again.
func (w *Watch) broke(_ *cache.Reflector, err error) {
	w.trouble(err)
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		w.refuseOnce.Do(func() { close(w.refused) })
	}
}
