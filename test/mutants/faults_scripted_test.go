package mutants_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-op-readiness/windows-op-readiness/test/scripted"
)

// answers has the pods of those names answer something else in one place; in place of
// everything, where old is "". An answer without that place is no fault, and refused.
func answers(pods, old, instead string) fault {
	named := regexp.MustCompile(pods)
	return func(b *bed) func() {
		return b.player.Change(func(pod *v1.Pod, a scripted.Answer) scripted.Answer {
			switch {
			case !named.MatchString(pod.Name):
			case old == "":
				a.Log = instead
			case !strings.Contains(a.Log, old):
				b.Errorf("pod %s says %q, in which %q is not: nothing is broken", pod.Name, a.Log, old)
			default:
				a.Log = strings.Replace(a.Log, old, instead, 1)
			}
			return a
		})
	}
}

// both breaks two things, which are one.
func both(one, other fault) fault {
	return func(b *bed) func() {
		undoOne := one(b)
		undoOther := other(b)
		return func() {
			undoOther()
			undoOne()
		}
	}
}

// answersAs has a pod answer as another does where nothing is broken.
func answersAs(name, other string) fault {
	return func(b *bed) func() {
		return b.player.Change(func(pod *v1.Pod, a scripted.Answer) scripted.Answer {
			if pod.Name == name {
				as := pod.DeepCopy()
				as.Name = other
				a, _ = script(as)
			}
			return a
		})
	}
}

// cutOff has a pod reach nobody any more once another has been run.
func cutOff(client, after string) fault {
	return func(b *bed) func() {
		broken := filepath.Join(b.TempDir(), "broken")
		return b.player.Change(func(pod *v1.Pod, a scripted.Answer) scripted.Answer {
			switch pod.Name {
			case client:
				a.Commands = fmt.Sprintf("if [ -e '%s' ]; then echo '{\"errors\": [\"i/o timeout\"]}'; exit; fi\n%s", broken, a.Commands)
			case after:
				b.must(os.WriteFile(broken, nil, 0o644))
			}
			return a
		})
	}
}

// unreadyAt has the node of a pod say once, when that comes to it, that it is not ready.
func unreadyAt(base, name string) fault {
	return func(b *bed) func() {
		var once sync.Once
		return b.onPods(base, func(ctx context.Context, pod *v1.Pod) {
			if pod.Name == name && pod.Spec.NodeName != "" {
				once.Do(func() { b.unready(ctx, pod.Spec.NodeName) })
			}
		})
	}
}

// refusePrivileged has Pod Security refuse privileged pods in the namespaces of a test.
func refusePrivileged(base string) fault {
	const label = "pod-security.kubernetes.io/enforce"
	return mutateAny(base, "", "namespaces", `[JSONPatch{op: "add", path: "/metadata/labels/pod-security.kubernetes.io~1enforce", value: "baseline"}]`,
		func(ctx context.Context, b *bed, _ string) (bool, error) {
			made, err := b.client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: "probe-of-a-namespace", Labels: map[string]string{"e2e-framework": base, label: "privileged"},
			}}, dryCreate)
			return err == nil && made.Labels[label] == "baseline", err
		})
}
