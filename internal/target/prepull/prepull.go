// Package prepull has nodes pull the images of tests before the first of them, so
// that no test waits, or fails, for a pull: one DaemonSet an image and system, where
// a system is Linux or a build of Windows. It waits for each, measures it, and
// removes all. What is in the way of a pull is said, and is no verdict.
//
// The DaemonSets live in a namespace of their own ([scratch]), which goes also after
// an interrupt. Simulated nodes pull nothing, and are left out: their pods would
// seem to run.
package prepull

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/scratch"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Options say what is pulled, and where.
type Options struct {
	// ID marks what is made.
	ID string
	// Images are those that the tests' binaries name; [Choose] says which of them
	// are pulled.
	Images []string
	Nodes  []result.Node
	// Limit is how long all may take; 0 stands for [DefaultLimit]. Patience is how
	// long a node may fail to pull an image; 0 stands for a minute, in which a
	// kubelet tries three times.
	Limit, Patience time.Duration
	// Note is told what goes on; may be nil.
	Note func(string)
}

// DefaultLimit is enough for Windows nodes that have none of the images.
const DefaultLimit = 30 * time.Minute

type puller struct {
	Options
	client    kubernetes.Interface
	namespace string
}

// Pull has the nodes pull images, those of a system one after the other, and
// returns what came of each image on each system, in order. The error says why
// nothing could be pulled, or that ctx ended; what was pulled until then is
// returned, too.
func Pull(ctx context.Context, client kubernetes.Interface, o Options) ([]result.Pull, error) {
	o.Limit, o.Patience = cmp.Or(o.Limit, DefaultLimit), cmp.Or(o.Patience, time.Minute)
	if o.Note == nil {
		o.Note = func(string) {}
	}
	all := systems(o.Nodes)
	p := &puller{Options: o, client: client}
	if slices.ContainsFunc(all, func(s system) bool { return len(s.nodes) > 0 }) {
		space, err := scratch.Make(ctx, client, scratch.Options{Purpose: "prepull", ID: o.ID, Limit: o.Limit, Note: o.Note})
		if err != nil {
			return nil, fmt.Errorf("pulling images before the tests: %w", err)
		}
		p.namespace = space.Name
		defer space.Remove(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	pulls := make([][]result.Pull, len(all))
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() { pulls[i] = p.system(limited, &all[i]) })
	}
	group.Wait()
	return slices.Concat(pulls...), ctx.Err()
}

func (p *puller) system(ctx context.Context, s *system) []result.Pull {
	var pulls []result.Pull
	for i, image := range Choose(p.Images, s.os) {
		pull := result.Pull{Image: image, OS: s.os, WindowsBuild: s.build, Nodes: len(s.nodes)}
		switch {
		case len(s.nodes) == 0:
			pull.Skipped = text.Count(s.simulated, "simulated node") + ", which pull nothing"
		default:
			p.Note(fmt.Sprintf("prepull: %s on %s", image, pull.System()))
			began := time.Now()
			pull.Problem = p.image(ctx, fmt.Sprintf("%s-%d", name(s), i), image, s)
			pull.Seconds = time.Since(began).Seconds()
			if pull.Problem != "" {
				p.Note(fmt.Sprintf("prepull: %s on %s: %s", image, pull.System(), pull.Problem))
			}
		}
		pulls = append(pulls, pull)
	}
	return pulls
}

var noName = regexp.MustCompile(`[^0-9a-z]+`)

// name is fit for the name of an object.
func name(s *system) string {
	if s.os == specs.Linux {
		return "linux"
	}
	return "windows-" + strings.Trim(noName.ReplaceAllString(s.build, "-"), "-")
}

// image has the nodes of a system pull an image, and says what is in the way.
func (p *puller) image(ctx context.Context, name, image string, s *system) (problem string) {
	sets := p.client.AppsV1().DaemonSets(p.namespace)
	if _, err := sets.Create(ctx, daemonSet(name, image, s), metav1.CreateOptions{}); err != nil {
		return cluster.Said("making a DaemonSet: " + err.Error())
	}
	// Images that follow meet no pods of this one.
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = sets.Delete(ctx, name, metav1.DeleteOptions{}) // the namespace goes in any case
	}()
	wanting, trouble, stuck := s.nodes, map[string]string{}, map[string]time.Time{}
	for {
		// Where the API server is away, it is asked again.
		if w, t, err := p.look(ctx, name, s); err == nil {
			wanting, trouble = w, t
		}
		switch {
		case len(wanting) == 0:
			return ""
		case ctx.Err() != nil:
			return without(wanting, trouble) + " when time was up"
		case p.allStuck(wanting, trouble, stuck):
			return without(wanting, trouble)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// without says which nodes have not pulled an image, and why the first has not.
func without(wanting []string, trouble map[string]string) string {
	said := text.Count(len(wanting), "node") + " without it: " + text.Few(wanting, 3)
	for _, node := range wanting {
		if trouble[node] != "" {
			said += ": " + trouble[node]
			break
		}
	}
	return cluster.Said(said)
}

// allStuck reports whether each node that has not pulled the image has failed to
// for so long that nothing else is to be expected.
func (p *puller) allStuck(wanting []string, trouble map[string]string, since map[string]time.Time) bool {
	all := true
	for _, node := range wanting {
		switch began, is := since[node]; {
		case trouble[node] == "":
			delete(since, node)
			all = false
		case !is:
			since[node] = time.Now()
			all = false
		case time.Since(began) < p.Patience:
			all = false
		}
	}
	return all
}

// look returns the nodes that have not pulled the image, in order, and what is in
// the way there.
func (p *puller) look(ctx context.Context, name string, s *system) (wanting []string, trouble map[string]string, err error) {
	trouble = map[string]string{}
	pods, err := p.client.CoreV1().Pods(p.namespace).List(ctx, metav1.ListOptions{LabelSelector: label + "=" + name})
	if err != nil {
		return nil, nil, err
	}
	has := map[string]bool{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pulled(pod) {
			has[pod.Spec.NodeName] = true
		} else if why := cluster.Trouble(pod); why != "" {
			trouble[pod.Spec.NodeName] = why
		}
	}
	for _, node := range s.nodes {
		if !has[node] {
			wanting = append(wanting, node)
		}
	}
	slices.Sort(wanting)
	return wanting, trouble, nil
}

// pulled reports whether a node has the image of its pod: the container was made of
// it, however it went on.
func pulled(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.ImageID != "" || cluster.Ran(&c)
	})
}

// label is the name of a DaemonSet, on its pods.
const label = "op-readiness/prepull-image"

// daemonSet runs an image on nodes of a system, by their names: labels do not tell
// real nodes from simulated ones.
func daemonSet(name, image string, s *system) *appsv1.DaemonSet {
	no, grace := false, int64(1)
	labels := map[string]string{label: name}
	var terms []corev1.NodeSelectorTerm
	for _, node := range s.nodes {
		terms = append(terms, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
		}})
	}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					OS:                            &corev1.PodOS{Name: corev1.OSName(s.os)},
					NodeSelector:                  map[string]string{corev1.LabelOSStable: string(s.os)},
					Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					TerminationGracePeriodSeconds: &grace,
					AutomountServiceAccountToken:  &no,
					EnableServiceLinks:            &no,
					Containers:                    []corev1.Container{{Name: "image", Image: image, ImagePullPolicy: corev1.PullIfNotPresent}},
					Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
					}},
				},
			},
		},
	}
}
