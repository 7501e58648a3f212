package evidence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
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

// startTimeout is how long a watch may take to begin.
const startTimeout = 30 * time.Second

// stream is a watch on all objects of a kind that goes on whatever breaks, and
// knows what it has missed.
type stream struct {
	what  string // "pods"
	kind  runtime.Object
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)

	begun, refused        chan struct{} // closed when the watch began, and when it is not allowed
	beginOnce, refuseOnce sync.Once
	done                  chan struct{} // closed when it has ended

	mu         sync.Mutex
	gap        gap // the newest one
	listedOnce bool
	newest     time.Time // when an object was seen last
	failure    error     // what keeps the watch from going on; nil while it does
}

// start begins to watch, until ctx ends. It returns when the watch has begun and
// told of what was there before, or with the reason why it cannot; done is closed
// in the end either way.
func (s *stream) start(ctx context.Context, strip cache.TransformFunc, tell cache.ResourceEventHandler) error {
	s.begun, s.refused, s.done = make(chan struct{}), make(chan struct{}), make(chan struct{})
	informer := cache.NewSharedIndexInformer(s.lists(ctx), s.kind, 0, nil)
	registration, err := informer.AddEventHandler(tell)
	if err = errors.Join(err, informer.SetTransform(strip), informer.SetWatchErrorHandler(s.broke)); err != nil {
		close(s.done)
		return fmt.Errorf("watching %s: %w", s.what, err)
	}
	go func() {
		defer close(s.done)
		informer.Run(ctx.Done())
	}()
	if err := s.begin(ctx, registration.HasSynced); err != nil {
		return fmt.Errorf("watching %s: %w", s.what, err)
	}
	return nil
}

// begin waits until the watch has begun, and what was there before is known.
func (s *stream) begin(ctx context.Context, synced func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("it did not begin within %v", startTimeout))
	defer cancel()
	select {
	case <-s.begun:
	case <-s.refused:
		return fmt.Errorf("the API server does not allow it (%w): it takes the permissions to list and to watch %s in the whole cluster; 'op-readiness preflight --print-rbac' prints the role", s.trying(), s.what)
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), s.trying())
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		return context.Cause(ctx)
	}
	return nil
}

// trying returns what keeps the watch from going on; nil while it does.
func (s *stream) trying() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// saw notes that an object was seen, and returns when.
func (s *stream) saw() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = time.Now()
	return s.newest
}

// clock is how times of day are shown.
const clock = "15:04:05"

// missed says what may not have been seen since a time; "" where all was.
func (s *stream) missed(since time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gap.to.After(since) {
		return ""
	}
	return fmt.Sprintf("%s that came and went between %s and %s UTC were not seen: %s", s.what, s.gap.from.UTC().Format(clock), s.gap.to.UTC().Format(clock), s.gap.why)
}

// lists is what the informer lists and watches with.
//
// An informer by itself is content with what there is: after some failures of
// a watch it lists again and says nothing, and a pod that was made and deleted
// in between is lost. So a watch that ends is taken up at the very event where
// it was, for as long as the API server can do that, and every list but the
// first is noted as a gap.
func (s *stream) lists(ctx context.Context) cache.ListerWatcher {
	return &cache.ListWatch{
		ListFunc: func(o metav1.ListOptions) (runtime.Object, error) {
			list, err := s.list(ctx, o)
			if err == nil {
				s.listed()
			}
			return list, err
		},
		WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) {
			r := &resumed{open: func(o metav1.ListOptions) (watch.Interface, error) {
				seconds := int64(watchTimeout.Seconds())
				o.TimeoutSeconds = &seconds
				return s.watch(ctx, o)
			}, note: s.trouble}
			// The first one is opened here, so that its error is the informer's.
			first, err := r.open(o)
			if err != nil {
				return nil, err
			}
			s.watching()
			r.first = first
			again, err := watchtools.NewRetryWatcher(o.ResourceVersion, r)
			if err != nil {
				first.Stop()
				return nil, fmt.Errorf("watching %s from %q: %w", s.what, o.ResourceVersion, err)
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

// gap is a time in which objects may have come and gone unseen.
type gap struct {
	from, to time.Time
	why      string
}

// listed notes that the objects were listed. All but the first list come after
// events that nobody will see any more.
func (s *stream) listed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listedOnce {
		why := fmt.Sprintf("the watch on %s broke, and the API server had not kept what happened since", s.what)
		if s.failure != nil {
			why = s.failure.Error()
		}
		s.gap = gap{from: s.newest, to: time.Now(), why: why}
	}
	s.listedOnce, s.newest, s.failure = true, time.Now(), nil
}

// watching notes that a watch was opened.
func (s *stream) watching() {
	s.beginOnce.Do(func() { close(s.begun) })
}

// trouble notes that a watch could not be taken up again, nil that it could.
func (s *stream) trouble(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

// broke is told what kept the informer from listing or watching; it tries again.
func (s *stream) broke(_ *cache.Reflector, err error) {
	s.trouble(err)
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		s.refuseOnce.Do(func() { close(s.refused) })
	}
}
