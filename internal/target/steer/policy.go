package steer

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

const (
	// label is on what this package makes; its value is the run's id, for people.
	label = "op-readiness/steering"
	// annotation holds the mark of what this package makes.
	annotation = "op-readiness/steering-by"
	// prefix is what all names begin with.
	prefix = "op-readiness-steering-"
	// runLabel is the e2e framework's, on all namespaces that a process makes.
	runLabel = "e2e-run"

	group       = "admissionregistration.k8s.io"
	policies    = "mutatingadmissionpolicies"
	bindings    = "mutatingadmissionpolicybindings"
	policyKind  = "MutatingAdmissionPolicy"
	bindingKind = policyKind + "Binding"

	// A pod with this annotation gets it back with the tokens of all policies
	// that are in force behind the question.
	probeAnnotation = "op-readiness/steering-probe"
	probeQuestion   = "in-force?"
)

// The conditions under which a pod keeps its place, in CEL.
var (
	placed = strings.Join([]string{
		`has(object.spec.nodeName) && object.spec.nodeName != ""`,
		`has(object.spec.os)`,
		`has(object.spec.nodeSelector) && size(object.spec.nodeSelector) > 0`,
		`has(object.spec.affinity) && has(object.spec.affinity.nodeAffinity)`,
	}, ") || (")
	hostProcess = strings.Join([]string{
		`has(object.spec.securityContext) && has(object.spec.securityContext.windowsOptions) && has(object.spec.securityContext.windowsOptions.hostProcess) && object.spec.securityContext.windowsOptions.hostProcess`,
		anyContainer(`has(c.securityContext.windowsOptions) && has(c.securityContext.windowsOptions.hostProcess) && c.securityContext.windowsOptions.hostProcess`),
	}, ") || (")
	// The e2e framework puts seccomp profiles, dropped capabilities and
	// allowPrivilegeEscalation on pods for Windows, too; they say nothing.
	linuxOnly = strings.Join([]string{
		`has(object.spec.hostPID) && object.spec.hostPID`,
		`has(object.spec.hostIPC) && object.spec.hostIPC`,
		`has(object.spec.shareProcessNamespace) && object.spec.shareProcessNamespace`,
		`has(object.spec.securityContext) && (` + anyField("object.spec.securityContext", "seLinuxOptions", "runAsUser", "runAsGroup", "fsGroup", "supplementalGroups", "sysctls") + `)`,
		anyContainer(anyField("c.securityContext", "seLinuxOptions", "runAsUser", "runAsGroup", "procMount") +
			` || has(c.securityContext.privileged) && c.securityContext.privileged` +
			` || has(c.securityContext.capabilities) && has(c.securityContext.capabilities.add)`),
	}, ") || (")
	selectsWindows = strings.Join([]string{
		`has(object.spec.os) && object.spec.os.name == "windows"`,
		`has(object.spec.nodeSelector) && "kubernetes.io/os" in object.spec.nodeSelector && object.spec.nodeSelector["kubernetes.io/os"] == "windows"`,
	}, ") || (")
)

func anyField(of string, fields ...string) string {
	for i, f := range fields {
		fields[i] = fmt.Sprintf("has(%s.%s)", of, f)
	}
	return strings.Join(fields, " || ")
}

// anyContainer holds a condition on c against every container and init
// container that has a security context.
func anyContainer(condition string) string {
	return fmt.Sprintf(`(object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])).exists(c, has(c.securityContext) && (%s))`, condition)
}

// policy is the MutatingAdmissionPolicy for the processes with those ids.
func (s *Policy) policy(conditions result.RunConditions, m mark, suiteRunIDs []any) *unstructured.Unstructured {
	subject := "true"
	if conditions.SteerPods != "" {
		subject = fmt.Sprintf(`(has(object.metadata.name) ? object.metadata.name : has(object.metadata.generateName) ? object.metadata.generateName : "").matches(%s)`,
			strconv.Quote(conditions.SteerPods))
	}
	variables := []any{
		variable("steered", fmt.Sprintf(`%t && %s && !((%s) || (%s) || (%s))`, conditions.Steer != "", subject, placed, hostProcess, linuxOnly)),
		variable("windows", fmt.Sprintf(`(%s) || (variables.steered && %t)`, selectsWindows, conditions.Steer == specs.Windows)),
	}
	mutations := []any{
		patch(fmt.Sprintf(`has(object.metadata.annotations) && %[1]q in object.metadata.annotations && !object.metadata.annotations[%[1]q].contains(%[2]q)`, probeAnnotation, m.Token),
			fmt.Sprintf(`JSONPatch{op: "replace", path: "/metadata/annotations/%s", value: object.metadata.annotations[%q] + %q}`, strings.ReplaceAll(probeAnnotation, "/", "~1"), probeAnnotation, " "+m.Token)),
		patch("variables.steered", `JSONPatch{op: "add", path: "/spec/nodeSelector", value: {"kubernetes.io/os": `+strconv.Quote(string(conditions.Steer))+`}}`),
	}
	if len(s.taints) > 0 {
		mutations = append(mutations,
			patch(`variables.windows && !has(object.spec.tolerations)`, `JSONPatch{op: "add", path: "/spec/tolerations", value: []}`))
		for _, t := range s.taints {
			mutations = append(mutations, patch(
				fmt.Sprintf(`variables.windows && !object.spec.tolerations.exists(t, has(t.key) && t.key == %q && (has(t.value) ? t.value : "") == %q && has(t.effect) && t.effect == %q)`, t.Key, t.Value, string(t.Effect)),
				fmt.Sprintf(`JSONPatch{op: "add", path: "/spec/tolerations/-", value: {"key": %q, "operator": "Equal", "value": %q, "effect": %q}}`, t.Key, t.Value, string(t.Effect))))
		}
	}
	if conditions.RuntimeClass != "" {
		mutations = append(mutations, patch(`variables.windows && !has(object.spec.runtimeClassName)`,
			fmt.Sprintf(`JSONPatch{op: "add", path: "/spec/runtimeClassName", value: %q}`, conditions.RuntimeClass)))
	}
	p := s.object(policyKind, m)
	p.Object["spec"] = map[string]any{
		"failurePolicy":      "Fail",
		"reinvocationPolicy": "IfNeeded",
		"matchConstraints": map[string]any{
			"namespaceSelector": map[string]any{
				"matchExpressions": []any{map[string]any{"key": runLabel, "operator": "In", "values": suiteRunIDs}},
			},
			"resourceRules": []any{map[string]any{
				"apiGroups":   []any{""},
				"apiVersions": []any{"v1"},
				"operations":  []any{"CREATE"},
				"resources":   []any{"pods"},
			}},
		},
		"variables": variables,
		"mutations": mutations,
	}
	return p
}

func variable(name, expression string) any {
	return map[string]any{"name": name, "expression": expression}
}

func patch(when, operation string) any {
	return map[string]any{
		"patchType": "JSONPatch",
		"jsonPatch": map[string]any{"expression": fmt.Sprintf("%s ? [%s] : []", when, operation)},
	}
}

// binding puts the policy into force.
func (s *Policy) binding(m mark) *unstructured.Unstructured {
	b := s.object(bindingKind, m)
	b.Object["spec"] = map[string]any{"policyName": m.name()}
	return b
}

// name is that of the policy with the mark, and of its binding.
func (m mark) name() string { return prefix + m.Token }

func (s *Policy) object(kind string, m mark) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/" + s.version,
		"kind":       kind,
		"metadata": map[string]any{
			"name":        m.name(),
			"labels":      map[string]any{label: labelValue(s.member.RunID)},
			"annotations": map[string]any{annotation: m.String()},
		},
	}}
}
