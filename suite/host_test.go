package suite

import (
	"context"
	"embed"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/test/e2e/framework"
	imageutils "k8s.io/kubernetes/test/utils/image"
	"k8s.io/utils/ptr"

	"github.com/windows-op-readiness/windows-op-readiness/suite/judge"
)

// hostScripts are pairs: what NAME.ps1 does on Windows, NAME.sh does on Linux.
//
// A PowerShell script ends with the value that is its answer; a shell script prints the
// line with it, "op-readiness: {…}". What it is to work with comes in variables of the
// environment. Scripts report what they find, and decide nothing.
//
//go:embed host
var hostScripts embed.FS

// hostPod returns a pod that is a part of its node: a HostProcess pod on Windows, and
// on Linux a privileged one in the node's own namespaces. It has no name yet.
func (s *system) hostPod(node *v1.Node) *v1.Pod {
	pod := on(s.pause(), node)
	pod.Spec.HostNetwork = true
	if s.os == v1.Windows {
		pod.Spec.SecurityContext = &v1.PodSecurityContext{WindowsOptions: &v1.WindowsSecurityContextOptions{
			HostProcess:   ptr.To(true),
			RunAsUserName: ptr.To(`NT AUTHORITY\SYSTEM`),
		}}
		return pod
	}
	pod.Spec.HostPID = true
	pod.Spec.Containers[0].SecurityContext = &v1.SecurityContext{Privileged: ptr.To(true)}
	return pod
}

// scripted has the pod run a script of hostScripts, once, instead of what it ran.
func (s *system) scripted(pod *v1.Pod, script string, env map[string]string) *v1.Pod {
	ginkgo.GinkgoHelper()
	suffix := ".sh"
	if s.os == v1.Windows {
		suffix = ".ps1"
	}
	text, err := hostScripts.ReadFile("host/" + script + suffix)
	framework.ExpectNoError(err, "there is no script %s for %s", script, s.os)
	command := []string{"sh", "-c", string(text)}
	if s.os == v1.Windows {
		command = powerShell(string(text), pod)
	}
	c := &pod.Spec.Containers[0]
	c.Name, c.Image, c.Command, c.Args = script, imageutils.GetE2EImage(imageutils.Agnhost), command, nil
	for _, name := range slices.Sorted(maps.Keys(env)) {
		c.Env = append(c.Env, v1.EnvVar{Name: name, Value: env[name]})
	}
	pod.Spec.RestartPolicy = v1.RestartPolicyNever
	return pod
}

// powerShell returns the command that runs a script in the pod and prints its value as
// the answer. A HostProcess pod has the host's Windows PowerShell, by its path, since a
// container of agnhost does not look for programs there; others have PowerShell Core,
// of agnhost's image.
func powerShell(script string, pod *v1.Pod) []string {
	program := `C:\Program Files\PowerShell\pwsh.exe`
	if pod.Spec.SecurityContext != nil && pod.Spec.SecurityContext.WindowsOptions != nil {
		program = `C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`
	}
	text := "$ErrorActionPreference = 'Stop'; $ProgressPreference = 'SilentlyContinue'\n" +
		"$answer = & {\n" + script + "\n}\n" +
		"[Console]::Out.WriteLine('op-readiness: ' + ($answer | ConvertTo-Json -Compress -Depth 8))\n"
	var encoded []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		encoded = binary.LittleEndian.AppendUint16(encoded, unit)
	}
	return []string{program, "-NoProfile", "-NonInteractive", "-EncodedCommand", base64.StdEncoding.EncodeToString(encoded)}
}

// scriptWithin is how long a script may take, apart from its pod's start.
const scriptWithin = 2 * time.Minute

// onHost runs a script on a node, in a pod of that name, and returns its log.
func onHost(ctx context.Context, f *framework.Framework, s *system, node *v1.Node, pod, script string, env map[string]string) string {
	ginkgo.GinkgoHelper()
	return logWhenEnded(ctx, f, create(ctx, f, s.scripted(named(s.hostPod(node), pod), script, env)))
}

// listen has a pod of that name serve netexec on a node, at a port that is free there,
// and returns where it answers.
func (s *system) listen(ctx context.Context, f *framework.Framework, node *v1.Node, name string) address {
	ginkgo.GinkgoHelper()
	at := freeAt(ctx, f, s, node, name+"-look")
	letIn(ctx, f, s, node, at.port)
	waitServing(ctx, f, create(ctx, f, named(s.listener(node, at.port), name)))
	return at
}

// portsFrom is where free ports are looked for: below those of NodePorts and of
// connections that a node makes.
const portsFrom = 20000

// freeAt returns the address of a node with a port at which nothing listens.
func freeAt(ctx context.Context, f *framework.Framework, s *system, node *v1.Node, pod string) address {
	ginkgo.GinkgoHelper()
	return address{internalIP(node), interfaces(ctx, f, s, node, pod).Free(portsFrom)}
}

// interfaces asks a node, in a pod of that name, for its interfaces.
func interfaces(ctx context.Context, f *framework.Framework, s *system, node *v1.Node, pod string) *judge.Interfaces {
	ginkgo.GinkgoHelper()
	seen, err := judge.ReadInterfaces(onHost(ctx, f, s, node, pod, "interfaces", nil))
	framework.ExpectNoError(err, "asking node %s", node.Name)
	return seen
}

// listener returns a pod that serves netexec at a port of a node, by HTTP at all of its
// addresses and by UDP at one.
func (s *system) listener(node *v1.Node, port int32) *v1.Pod {
	pod := s.hostPod(node)
	c := &pod.Spec.Containers[0]
	c.Name, c.Image = "netexec", imageutils.GetE2EImage(imageutils.Agnhost)
	c.Args = []string{"netexec", fmt.Sprintf("--http-port=%d", port), fmt.Sprintf("--udp-port=%d", port), "--udp-listen-addresses=" + internalIP(node)}
	if s.os == v1.Windows {
		// A host starts no program whose name lacks .exe.
		c.Command = []string{"cmd", "/C", "copy", "/Y", `c:\hpc\agnhost`, `c:\hpc\agnhost.exe`, "&&", `c:\hpc\agnhost.exe`}
	}
	c.ReadinessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/hostname", Port: intstr.FromInt32(port)}}}
	return pod
}

// letIn has the firewall of a Windows node let others reach a port until the test ends;
// that of a Linux node is left as it is. Rules of tests that were killed are removed.
func letIn(ctx context.Context, f *framework.Framework, s *system, node *v1.Node, port int32) {
	ginkgo.GinkgoHelper()
	if s.os != v1.Windows {
		return
	}
	change := func(ctx context.Context, pod, remove, port string) []string {
		ginkgo.GinkgoHelper()
		env := map[string]string{"NAMESPACE": f.Namespace.Name, "REMOVE": remove, "PORT": port}
		rules, err := judge.ReadRules(onHost(ctx, f, s, node, pod+"-"+node.Name, "firewall", env))
		framework.ExpectNoError(err, "changing the firewall of node %s", node.Name)
		return rules
	}
	own := f.Namespace.Name
	ginkgo.DeferCleanup(func(ctx context.Context) {
		left := leftBehind(ctx, f, change(ctx, "firewall-close", own, ""))
		if len(left) > 0 {
			change(ctx, "firewall-clean", strings.Join(left, " "), "")
		}
	})
	if rules := change(ctx, "firewall-open", "", strconv.Itoa(int(port))); !slices.Contains(rules, own) {
		framework.Failf("the firewall of node %s has the rules %q, and none for port %d, which was to be opened", node.Name, rules, port)
	}
}

// leftBehind returns those of names of namespaces that are no namespace any more: their
// tests were killed. A test makes its namespace first and leaves nothing of its name, so
// whoever has seen the names before cannot take one of a test that goes on.
func leftBehind(ctx context.Context, f *framework.Framework, names []string) []string {
	ginkgo.GinkgoHelper()
	namespaces, err := f.ClientSet.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err, "listing the namespaces")
	live := map[string]bool{}
	for i := range namespaces.Items {
		live[namespaces.Items[i].Name] = true
	}
	return judge.LeftBehind(names, live)
}

// logWhenEnded waits until a pod has ended, well or not, and returns what it said. A
// pod that ended before its container could start has said why that is.
func logWhenEnded(ctx context.Context, f *framework.Framework, pod *v1.Pod) string {
	ginkgo.GinkgoHelper()
	var last *v1.Pod
	gomega.Eventually(ctx, func(ctx context.Context) (string, error) {
		now, err := f.ClientSet.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		last = now
		if now.Status.Phase == v1.PodSucceeded || now.Status.Phase == v1.PodFailed {
			return "", nil
		}
		return stateOf(now), nil
	}).WithTimeout(within(podStart)+scriptWithin).WithPolling(min(framework.Poll, long(framework.Poll))).Should(gomega.BeEmpty(), "pods on node %s that do not end", pod.Spec.NodeSelector[v1.LabelHostname])
	if len(last.Status.ContainerStatuses) == 0 {
		return fmt.Sprintf("%s: %s", stateOf(last), last.Status.Message)
	}
	return logOf(ctx, f, pod.Name, pod.Spec.Containers[0].Name)
}
