package mutants_test

import (
	"context"
	"regexp"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-op-readiness/windows-op-readiness/test/scripted"
)

// answers has the pods of those names answer something else, where their answer matches.
// An answer that does not match is no fault at all, and refused.
func answers(pods, old, instead string) fault {
	named, said := regexp.MustCompile(pods), regexp.MustCompile(old)
	return func(b *bed) func() {
		return b.player.Change(func(pod *v1.Pod, a scripted.Answer) scripted.Answer {
			if named.MatchString(pod.Name) {
				if !said.MatchString(a.Log) {
					b.Errorf("pod %s says %q, in which %q is not: nothing is broken", pod.Name, a.Log, old)
				}
				a.Log = said.ReplaceAllLiteralString(a.Log, instead)
			}
			return a
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
