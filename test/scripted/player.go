package scripted

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/simulated"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// Player plays the Windows pods of one cluster.
type Player struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	dir     string // a folder for each pod, by its UID
	fault   func(error)

	mu     sync.Mutex
	script Script
	played map[types.UID]bool
}

// Up makes a cluster whose Windows pods are played by the script, and which is removed
// when the test ends. Commands are the names of those that pods answer.
func Up(t *testing.T, script Script, commands []string, change ...func(*provider.Request)) (*provider.Cluster, *Player) {
	t.Helper()
	dir := t.TempDir()
	folder, err := commandFolder(dir, commands)
	if err != nil {
		t.Fatal(err)
	}
	cluster := kwoktest.Up(t, append(change, func(o *provider.Request) { o.Set = map[string]string{kwok.Commands: folder} })...)
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	p := &Player{
		client: kwoktest.Client(t, cluster), dynamic: dyn, dir: dir, script: script, played: map[types.UID]bool{},
		fault: func(err error) { t.Error(err) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); p.run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return cluster, p
}

// commandFolder makes a folder of commands, each of which is answered by the pod in
// whose folder it is run.
func commandFolder(dir string, commands []string) (string, error) {
	folder := filepath.Join(dir, "commands")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", err
	}
	for _, name := range commands {
		text := fmt.Sprintf("#!/bin/sh\nexec /bin/sh ./commands.sh %s \"$@\"\n", name)
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// Change lets what the script answers be changed, until undo is called.
func (p *Player) Change(change func(pod *v1.Pod, a Answer) Answer) (undo func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.script
	p.script = func(pod *v1.Pod) (Answer, bool) {
		a, ok := before(pod)
		if ok {
			a = change(pod, a)
		}
		return a, ok
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.script = before
	}
}

// run plays pods until ctx ends, and all that it has begun.
func (p *Player) run(ctx context.Context) {
	var playing sync.WaitGroup
	defer playing.Wait()
	informer := informers.NewSharedInformerFactory(p.client, 0).Core().V1().Pods().Informer()
	handle := func(o any) {
		pod, ok := o.(*v1.Pod)
		if !ok || !p.begins(pod) {
			return
		}
		playing.Go(func() {
			if err := p.play(ctx, pod); err != nil && ctx.Err() == nil {
				p.fault(fmt.Errorf("playing pod %s/%s: %w", pod.Namespace, pod.Name, err))
			}
		})
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, o any) { handle(o) }}); err != nil {
		p.fault(err)
		return
	}
	informer.Run(ctx.Done())
}

// begins reports whether a pod for Windows has a node now, and was not played before.
func (p *Player) begins(pod *v1.Pod) bool {
	if pod.Spec.OS == nil || pod.Spec.OS.Name != v1.Windows || pod.Spec.NodeName == "" || pod.Status.Phase != v1.PodPending {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.played[pod.UID] {
		return false
	}
	p.played[pod.UID] = true
	return true
}

// play gives a pod its logs and commands, lets it run, and ends it.
func (p *Player) play(ctx context.Context, pod *v1.Pod) error {
	p.mu.Lock()
	answer, ok := p.script(pod)
	p.mu.Unlock()
	if ok {
		if err := p.prepare(ctx, pod, answer); err != nil {
			return ifThere(err)
		}
	}
	patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: "yes"}}}`, simulated.PlayedAnnotation)
	_, err := p.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil || !ok || answer.Runs {
		return ifThere(err)
	}
	return ifThere(p.end(ctx, pod, answer))
}

// ifThere returns an error unless it says that the pod, or its namespace, is gone.
func ifThere(err error) error {
	if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) || errors.Is(err, errGone) {
		return nil
	}
	return err
}

// prepare writes what a pod answers, tells kwok, and waits until its log can be read.
func (p *Player) prepare(ctx context.Context, pod *v1.Pod, answer Answer) error {
	if err := answer.check(); err != nil {
		return err
	}
	dir := filepath.Join(p.dir, string(pod.UID))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	files := map[string]string{"log": criLog(answer.Log, time.Now()), "commands.sh": answer.Commands}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	err := p.apply(ctx, pod, "Logs", "logs", map[string]any{
		"logs": []any{map[string]any{"logsFile": filepath.Join(dir, "log")}},
	})
	if err != nil {
		return err
	}
	err = p.apply(ctx, pod, "Exec", "execs", map[string]any{
		"execs": []any{map[string]any{"local": map[string]any{"workDir": dir}}},
	})
	if err != nil {
		return err
	}
	return p.awaitLog(ctx, pod, answer.Log)
}

// apply makes an object of kwok that has the name of a pod.
func (p *Player) apply(ctx context.Context, pod *v1.Pod, kind, resource string, spec map[string]any) error {
	of := schema.GroupVersionResource{Group: "kwok.x-k8s.io", Version: "v1alpha1", Resource: resource}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": of.GroupVersion().String(), "kind": kind,
		"metadata": map[string]any{"name": pod.Name, "namespace": pod.Namespace},
		"spec":     spec,
	}}
	_, err := p.dynamic.Resource(of).Namespace(pod.Namespace).Apply(ctx, pod.Name, object, metav1.ApplyOptions{FieldManager: "scripted", Force: true})
	return err
}

// patience is how long the cluster may take for one step of a pod.
const patience = time.Minute

// awaitLog waits until a pod's log is what it is to say.
func (p *Player) awaitLog(ctx context.Context, pod *v1.Pod, want string) error {
	var last error
	options := &v1.PodLogOptions{Container: pod.Spec.Containers[0].Name}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		said, err := p.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(ctx)
		if apierrors.IsNotFound(err) {
			return false, err
		}
		if last = err; err == nil && string(said) != want {
			last = fmt.Errorf("its log is %q, and not %q", said, want)
		}
		return last == nil, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// errGone says that a pod was deleted before it ended.
var errGone = errors.New("the pod was deleted")

// end waits until a pod runs, and ends its containers.
func (p *Player) end(ctx context.Context, pod *v1.Pod, answer Answer) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		now, err := p.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		switch {
		case err != nil:
			return false, err
		case now.UID != pod.UID || now.DeletionTimestamp != nil:
			return false, errGone
		case now.Status.Phase == v1.PodPending:
			return false, nil
		}
		now.Status = *answer.ended(now, time.Now())
		_, err = p.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return true, err
	})
}
