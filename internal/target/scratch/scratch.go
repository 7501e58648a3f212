// Package scratch makes namespaces for pods that belong to no test: those of
// probes, of log collection, of pulling images. Such a namespace goes when its
// work has ended, also when that was interrupted. What a killed process left is
// removed by the next that makes one for the same purpose.
package scratch

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// Options say what a namespace is for.
type Options struct {
	// Purpose is one word, such as "probe": it is in the namespace's name, and in
	// its [Label].
	Purpose string
	// ID is the label's value: who made it.
	ID string
	// Limit is how long the namespace may be in use; 0 stands for [DefaultLimit].
	Limit time.Duration
	// Note is told what could not be removed, or was; may be nil.
	Note func(string)
}

// DefaultLimit is enough for nodes that pull a Windows image for the first time.
const DefaultLimit = 15 * time.Minute

// Label is the label of namespaces of a purpose.
func Label(purpose string) string { return "op-readiness/" + purpose }

// limitAnnotation says for how many seconds a namespace may be in use.
func limitAnnotation(purpose string) string { return Label(purpose) + "-seconds" }

// Space is a namespace that was made.
type Space struct {
	// Name is the namespace's.
	Name string

	client  kubernetes.Interface
	options Options
}

// Make makes a namespace in which any pod may run, removes what killed processes
// have left of that purpose, and waits until pods can be made. Without error, the
// caller ends with [Space.Remove].
func Make(ctx context.Context, client kubernetes.Interface, o Options) (*Space, error) {
	o.Limit = cmp.Or(o.Limit, DefaultLimit)
	if o.Note == nil {
		o.Note = func(string) {}
	}
	made, err := client.CoreV1().Namespaces().Create(ctx, o.namespace(), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("making a namespace: %w", err)
	}
	s := &Space{Name: made.Name, client: client, options: o}
	s.sweep(ctx, made)
	if err := s.ready(ctx); err != nil {
		s.Remove(ctx)
		return nil, err
	}
	return s, nil
}

// namespace has the level of pod security that HostProcess and privileged pods need.
func (o *Options) namespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "op-readiness-" + o.Purpose + "-",
		Labels: map[string]string{
			Label(o.Purpose):                     labelValue(o.ID),
			"app.kubernetes.io/managed-by":       "op-readiness",
			"pod-security.kubernetes.io/enforce": "privileged",
		},
		Annotations: map[string]string{limitAnnotation(o.Purpose): fmt.Sprint(int(o.Limit.Seconds()))},
	}}
}

var noLabel = regexp.MustCompile(`[^A-Za-z0-9]+`)

// labelValue makes a label's value of an id that anybody may have chosen.
func labelValue(id string) string {
	id = strings.Trim(noLabel.ReplaceAllString(id, "-"), "-")
	return strings.Trim(id[:min(len(id), 63)], "-")
}

// ready waits until pods can be made: the namespace has its service account.
func (s *Space) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := s.client.CoreV1().ServiceAccounts(s.Name).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the service account of namespace %s: %w", s.Name, err)
	}
	return nil
}

// sweep removes what killed processes have left: namespaces that were made too
// long before this one, by the API server's clock, to be in use.
func (s *Space) sweep(ctx context.Context, own *corev1.Namespace) {
	purpose, note := s.options.Purpose, s.options.Note
	namespaces := s.client.CoreV1().Namespaces()
	list, err := namespaces.List(ctx, metav1.ListOptions{LabelSelector: Label(purpose)})
	if err != nil {
		note(fmt.Sprintf("namespaces that an earlier call left (%s) are not removed: %v", purpose, err))
		return
	}
	for i := range list.Items {
		ns := &list.Items[i]
		if ns.Status.Phase == corev1.NamespaceTerminating || !leftOver(ns, purpose, own.CreationTimestamp.Time) {
			continue
		}
		uid := ns.UID
		err := namespaces.Delete(ctx, ns.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		switch {
		case err == nil:
			note("removed namespace " + ns.Name + ", which an earlier call left")
		case !apierrors.IsNotFound(err):
			note(fmt.Sprintf("namespace %s, which an earlier call left, stays: %v", ns.Name, err))
		}
	}
}

// leftOver reports whether who made the namespace must have ended by now.
func leftOver(ns *corev1.Namespace, purpose string, now time.Time) bool {
	seconds, err := strconv.Atoi(ns.Annotations[limitAnnotation(purpose)])
	if err != nil || seconds < 0 || seconds > int((24*time.Hour).Seconds()) {
		seconds = int(DefaultLimit.Seconds())
	}
	const margin = 2 * time.Minute // for making and removing
	return now.Sub(ns.CreationTimestamp.Time) > time.Duration(seconds)*time.Second+margin
}

// How long removing may take: patience, and what an interrupted process has.
const (
	goneTimeout   = time.Minute
	removeTimeout = 10 * time.Second
)

// Remove removes the namespace, also and above all after ctx has ended. Only
// before, it waits until the pods are gone, so that no test meets them.
func (s *Space) Remove(ctx context.Context) {
	interrupted := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goneTimeout)
	defer cancel()
	request, cancelRequest := context.WithTimeout(ctx, removeTimeout)
	defer cancelRequest()
	namespaces, note := s.client.CoreV1().Namespaces(), s.options.Note
	if err := namespaces.Delete(request, s.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		note(fmt.Sprintf("namespace %s is left behind: %v: kubectl delete namespace %s", s.Name, err, s.Name))
		return
	}
	if interrupted {
		return
	}
	err := wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := namespaces.Get(ctx, s.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		note(fmt.Sprintf("namespace %s is being removed, and still there after %s", s.Name, goneTimeout))
	}
}
