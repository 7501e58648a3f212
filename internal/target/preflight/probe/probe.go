package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/scratch"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Kind is what a probe is about.
type Kind string

// The kinds.
const (
	TestImages    Kind = "test-images"
	DNS           Kind = "dns"
	Internet      Kind = "internet"
	HostProcess   Kind = "host-process"
	RuntimeClass  Kind = "runtime-class"
	NetworkPolicy Kind = "network-policy"
)

// State is how a probe ended.
type State string

// The states.
const (
	OK     State = "ok"
	Failed State = "failed"
	// Unknown says that nothing was found out.
	Unknown State = "unknown"
)

// Result is what one probe has found out on one target.
type Result struct {
	Kind  Kind  `json:"kind"`
	State State `json:"state"`
	Target
	// Node is where the pod ran, "" where it ran nowhere.
	Node string `json:"node,omitempty"`
	// Found is one line for people.
	Found string `json:"found"`
	// Class is the runtime class, for [RuntimeClass].
	Class string `json:"class,omitempty"`
	// Pulls are the images that were pulled, and how long that took.
	Pulls []Pull `json:"pulls,omitempty"`
}

// Pull is an image that a node has pulled.
type Pull struct {
	Image string `json:"image"`
	// Seconds is 0 where the image was there already.
	Seconds float64 `json:"seconds,omitempty"`
}

// Images are the names of images as nodes shall pull them.
type Images struct{ Agnhost, Pause string }

// Options say what is probed, and how long.
type Options struct {
	// ID marks what is made.
	ID      string
	Targets []Target
	Images  Images
	// Name is what pods look up and connect to, as host:port, such as
	// "kubernetes.default.svc.cluster.local:443".
	Name string
	// Outside is what pods connect to in the internet, as host:port; "" where
	// that is not probed.
	Outside string
	// HostProcess asks whether a HostProcess container starts, NetworkPolicy
	// whether a policy is enforced.
	HostProcess, NetworkPolicy bool
	// RuntimeClasses are those of Windows pods.
	RuntimeClasses []string
	// Limit is how long all probes may take, Patience how long a pod may be
	// stuck, such as without a node or an image.
	Limit, Patience time.Duration
	// PolicyTimeout is how long a NetworkPolicy may take to come into force; 0
	// stands for 45 s.
	PolicyTimeout time.Duration
	// Interval is how often pods are looked at; 0 stands for half a second.
	Interval time.Duration
	// Note is told what goes on; may be nil.
	Note func(string)
}

// Outside is the address that Kubernetes' own tests connect to
// (https://github.com/kubernetes/kubernetes/blob/v1.36.3/test/e2e/network/networking.go#L91).
const Outside = "8.8.8.8:53"

// DefaultLimit is enough for nodes that pull a Windows image for the first time.
const DefaultLimit = scratch.DefaultLimit

type prober struct {
	Options
	client    kubernetes.Interface
	namespace string

	mu      sync.Mutex
	results []Result
}

// Run probes the targets, and removes all that it has made. The error says why
// nothing could be probed; or that ctx ended. Results are in the order of
// targets, then of probes.
func Run(ctx context.Context, client kubernetes.Interface, o Options) ([]Result, error) {
	if len(o.Targets) == 0 {
		return nil, nil
	}
	o.Interval = cmp.Or(o.Interval, 500*time.Millisecond)
	o.PolicyTimeout = cmp.Or(o.PolicyTimeout, 45*time.Second)
	if o.Note == nil {
		o.Note = func(string) {}
	}
	p := &prober{Options: o, client: client}
	space, err := scratch.Make(ctx, client, scratch.Options{Purpose: purpose, ID: o.ID, Limit: o.Limit, Note: o.Note})
	if err != nil {
		return nil, fmt.Errorf("probing by pods: %w", err)
	}
	p.namespace = space.Name
	defer space.Remove(ctx)
	limited, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	var group sync.WaitGroup
	for _, t := range o.Targets {
		group.Go(func() { p.target(limited, t) })
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(p.results, func(a, b Result) int {
		at := func(r Result) int {
			return slices.IndexFunc(o.Targets, func(t Target) bool { return t.OS == r.OS && t.Build == r.Build })
		}
		kinds := []Kind{TestImages, DNS, Internet, HostProcess, RuntimeClass, NetworkPolicy}
		return 10*(at(a)-at(b)) + slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind)
	})
	return p.results, nil
}

func (p *prober) add(r Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.results = append(p.results, r)
}

// target probes one target: first whether it can start anything at all.
func (p *prober) target(ctx context.Context, t Target) {
	started := p.images(ctx, t)
	type probe struct {
		kind  Kind
		class string
		do    func() Result
	}
	image := p.Images.Agnhost
	probes := []probe{{DNS, "", func() Result {
		return p.connects(ctx, t, DNS, connect(image, p.Name, connectTimeout))
	}}}
	if p.Outside != "" {
		probes = append(probes, probe{Internet, "", func() Result {
			return p.connects(ctx, t, Internet, connect(image, p.Outside, connectTimeout))
		}})
	}
	if t.OS == specs.Windows && p.HostProcess {
		probes = append(probes, probe{HostProcess, "", func() Result {
			return p.starts(ctx, t.hostProcess(p.Limit, image))
		}})
	}
	if t.OS == specs.Windows {
		for _, class := range p.RuntimeClasses {
			probes = append(probes, probe{RuntimeClass, class, func() Result {
				return p.starts(ctx, t.runtimeClass(p.Limit, image, class))
			}})
		}
	}
	if p.NetworkPolicy {
		probes = append(probes, probe{NetworkPolicy, "", func() Result { return p.enforces(ctx, t) }})
	}
	var group sync.WaitGroup
	for _, one := range probes {
		group.Go(func() {
			r := Result{State: Unknown, Found: "not probed: no pod with the test images started"}
			if started {
				r = one.do()
			}
			r.Kind, r.Class, r.Target = one.kind, one.class, t
			p.add(r)
		})
	}
	group.Wait()
}

// images makes a node pull the test images, and reports whether the one that
// further probes use has started.
func (p *prober) images(ctx context.Context, t Target) bool {
	p.Note(fmt.Sprintf("probe: a pod on %s pulls %s and %s", t.System(), p.Images.Agnhost, p.Images.Pause))
	pod := t.images(p.Limit, p.Images)
	r := Result{Kind: TestImages, Target: t}
	got, stuck, err := p.await(ctx, pod, allStarted)
	r.Node = nodeOf(got)
	switch {
	case err != nil && got == nil:
		r.State, r.Found = Unknown, err.Error()
	case stuck != "":
		r.State, r.Found = Failed, stuck
	case err != nil:
		r.State, r.Found = Unknown, waitingFor(got, err)
	default:
		r.State = OK
		r.Pulls = p.pulls(ctx, got)
		r.Found = describe(r.Pulls)
	}
	p.add(r)
	return r.State == OK || got != nil && hasStarted(got, "agnhost")
}

// connects makes a pod that connects to an address.
func (p *prober) connects(ctx context.Context, t Target, kind Kind, c corev1.Container) Result {
	got, stuck, err := p.await(ctx, t.pod(string(kind), p.Limit, c), ended)
	r := Result{State: Unknown, Node: nodeOf(got)}
	switch {
	case stuck != "":
		r.Found = "its pod does not start: " + stuck
	case err != nil:
		r.Found = waitingFor(got, err)
	default:
		r.State, r.Found = answer(got)
	}
	return r
}

// starts makes a pod that is to start, and to end well.
func (p *prober) starts(ctx context.Context, pod *corev1.Pod) Result {
	got, stuck, err := p.await(ctx, pod, ended)
	r := Result{State: OK, Node: nodeOf(got), Found: "a pod started"}
	switch {
	case stuck != "":
		r.State, r.Found = Failed, stuck
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		r.State, r.Found = Failed, err.Error()
	case err != nil:
		r.State, r.Found = Unknown, waitingFor(got, err)
	default:
		if state, found := answer(got); state != OK {
			r.State, r.Found = Failed, found
		}
	}
	return r
}

// tries is how often a connection is tried before a policy forbids it.
const tries = 3

// enforces connects to a pod, denies that by a policy, and connects again.
func (p *prober) enforces(ctx context.Context, t Target) Result {
	unknown := func(format string, args ...any) Result {
		return Result{State: Unknown, Found: fmt.Sprintf(format, args...)}
	}
	server, stuck, err := p.await(ctx, t.server(p.Limit, p.Images.Agnhost), addressed)
	switch {
	case stuck != "":
		return unknown("its pod does not start: %s", stuck)
	case err != nil:
		return unknown("%s", waitingFor(server, err))
	}
	attempt := 0
	again := func() Result {
		attempt++
		pod := t.pod(fmt.Sprintf("policy-%d", attempt), p.Limit, connect(p.Images.Agnhost, hostPort(server.Status.PodIP), 3*time.Second))
		got, stuck, err := p.await(ctx, pod, ended)
		switch {
		case stuck != "":
			return unknown("its pod does not start: %s", stuck)
		case err != nil:
			return unknown("%s", waitingFor(got, err))
		}
		state, found := answer(got)
		return Result{State: state, Found: found, Node: nodeOf(got)}
	}
	before := again()
	for before.State == Failed && attempt < tries {
		before = again()
	}
	switch before.State {
	case Unknown:
		return before
	case Failed:
		return unknown("one pod does not reach the other even without a policy: %s", before.Found)
	}
	if _, err := p.client.NetworkingV1().NetworkPolicies(p.namespace).Create(ctx, t.deny(), metav1.CreateOptions{}); err != nil {
		return unknown("making a NetworkPolicy: %v", err)
	}
	for since := time.Now(); ; {
		switch after := again(); {
		case after.State == Unknown:
			return after
		case after.State == Failed:
			return Result{State: OK, Node: after.Node, Found: "a policy keeps a pod from another"}
		case time.Since(since) > p.PolicyTimeout:
			return Result{State: Failed, Node: after.Node, Found: fmt.Sprintf("a policy that denies it does not keep a pod from another, %s after it was made", p.PolicyTimeout)}
		}
	}
}

// await makes a pod, and returns it when done says so. stuck says why the pod
// will not get there; the error is that of making it, or that time is up.
func (p *prober) await(ctx context.Context, pod *corev1.Pod, done func(*corev1.Pod) bool) (got *corev1.Pod, stuck string, err error) {
	pods := p.client.CoreV1().Pods(p.namespace)
	if got, err = pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return nil, "", fmt.Errorf("making a pod: %w", err)
	}
	var troubled, asked time.Time // since when; when events were last looked at
	asked = time.Now()
	for {
		reason := cluster.Trouble(got)
		switch now := time.Now(); {
		case done(got):
			return got, "", nil
		case got.Status.Phase == corev1.PodFailed || got.Status.Phase == corev1.PodSucceeded:
			return got, cmp.Or(reason, cluster.Said(got.Status.Reason+" "+got.Status.Message), "its pod has ended"), nil
		case reason == "":
			troubled = time.Time{}
		case troubled.IsZero():
			troubled = now
		case now.Sub(troubled) >= p.Patience:
			return got, reason, nil
		}
		if !sandboxed(got) && time.Since(asked) >= p.Patience {
			// Why it has no sandbox, such as for its network, only events tell.
			if warning := p.lastWarning(ctx, got); warning != "" {
				return got, warning, nil
			}
			asked = time.Now()
		}
		select {
		case <-ctx.Done():
			return got, "", ctx.Err()
		case <-time.After(p.Interval):
		}
		next, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		switch {
		case err == nil:
			got = next
		case apierrors.IsNotFound(err):
			return got, "", errors.New("its pod was deleted by somebody else")
		case apierrors.IsForbidden(err):
			return got, "", err
		}
	}
}
