package nodelogs

import (
	"context"
	"embed"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// scripts print a log: that of LOG, and its end, of at most LIMIT bytes. Where
// there is none, they say why and end with exit code 3.
//
//go:embed scripts
var scripts embed.FS

// exitNone is the exit code of a script that finds no log.
const exitNone = 3

// printed makes a pod on a node whose containers print what is lacking, one each.
func (c *collector) printed(ctx context.Context, n *corev1.Node, of specs.OS, lacking []lack) {
	if gone := notReporting(n); gone != "" {
		c.missAll(n.Name, lacking, gone)
		return
	}
	space, err := c.space()
	if err != nil {
		c.missAll(n.Name, lacking, reason(ctx, err))
		return
	}
	pod, err := c.pod(n, of, lacking)
	if err == nil {
		pod, err = c.client.CoreV1().Pods(space.Name).Create(ctx, pod, metav1.CreateOptions{})
	}
	if err != nil {
		c.missAll(n.Name, lacking, "making a pod: "+reason(ctx, err))
		return
	}
	c.note(fmt.Sprintf("logs: a pod on %s prints %s", n.Name, names(lacking)))
	var group sync.WaitGroup
	for _, l := range lacking {
		group.Go(func() {
			err := c.keep(ctx, l.path(n.Name), func(ctx context.Context, w io.Writer) error { return c.follow(ctx, pod, l.name, w) })
			if err != nil {
				c.missAll(n.Name, []lack{l}, reason(ctx, err))
			}
		})
	}
	group.Wait()
}

func names(lacking []lack) string {
	var all []string
	for _, l := range lacking {
		all = append(all, l.name)
	}
	return text.And(all)
}

// notReporting says that no pod can start on a node, since its kubelet is away.
func notReporting(n *corev1.Node) string {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionUnknown {
			return fmt.Sprintf("the kubelet has not reported since %s", condition.LastHeartbeatTime.UTC().Format(time.RFC3339))
		}
	}
	return ""
}

// pod is the one that prints. It is bound to its node, tolerates all, and ends by
// itself.
func (c *collector) pod(n *corev1.Node, of specs.OS, lacking []lack) (*corev1.Pod, error) {
	yes, no, grace, limit := true, false, int64(1), max(1, int64(c.PerNode.Seconds()))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "logs-"},
		Spec: corev1.PodSpec{
			NodeName:                      n.Name,
			OS:                            &corev1.PodOS{Name: corev1.OSName(of)},
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         &limit,
			TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			HostNetwork:                   true,
		},
	}
	for _, l := range lacking {
		command, err := command(l.script)
		if err != nil {
			return nil, err
		}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: l.name, Image: c.image(n), ImagePullPolicy: corev1.PullIfNotPresent, Command: command,
			Env: []corev1.EnvVar{{Name: "LOG", Value: l.name}, {Name: "LIMIT", Value: strconv.Itoa(maxFile)}},
		})
	}
	if of == specs.Windows {
		user := `NT AUTHORITY\SYSTEM`
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: &yes, RunAsUserName: &user}}
		return pod, nil
	}
	pod.Spec.HostPID = true
	pod.Spec.Volumes = []corev1.Volume{{Name: "node", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	root := int64(0)
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].VolumeMounts = []corev1.VolumeMount{{Name: "node", MountPath: "/node", ReadOnly: true}}
		pod.Spec.Containers[i].SecurityContext = &corev1.SecurityContext{Privileged: &yes, RunAsUser: &root}
	}
	return pod, nil
}

// image is agnhost, if possible one that the node has.
func (c *collector) image(n *corev1.Node) string {
	if c.Image != "" {
		return c.Image
	}
	for _, image := range n.Status.Images {
		for _, name := range image.Names {
			if at := strings.LastIndexByte(name, ':'); at > 0 && path.Base(name[:at]) == "agnhost" {
				return name
			}
		}
	}
	return DefaultImage
}

// command runs a script. Windows PowerShell is the host's, by its path, since a
// HostProcess container of agnhost does not look for programs there.
func command(script string) ([]string, error) {
	text, err := scripts.ReadFile("scripts/" + script)
	if err != nil {
		return nil, err
	}
	if path.Ext(script) == ".sh" {
		return []string{"sh", "-c", string(text)}, nil
	}
	begin := "$ErrorActionPreference = 'Stop'; $ProgressPreference = 'SilentlyContinue'\n" +
		"[Console]::OutputEncoding = New-Object Text.UTF8Encoding $false\n"
	var encoded []byte
	for _, unit := range utf16.Encode([]rune(begin + string(text))) {
		encoded = binary.LittleEndian.AppendUint16(encoded, unit)
	}
	return []string{
		`C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`, "-NoProfile", "-NonInteractive",
		"-EncodedCommand", base64.StdEncoding.EncodeToString(encoded),
	}, nil
}

// look is how often a pod is looked at, and patience how long something may keep
// it from starting.
const (
	look     = time.Second
	patience = 20 * time.Second
)

// follow writes what a container says until it ends. What it says is read while it
// runs: so nothing is lost when a kubelet rotates logs, and what came until time is
// up is kept.
func (c *collector) follow(ctx context.Context, pod *corev1.Pod, container string, w io.Writer) error {
	if _, err := c.await(ctx, pod, func(p *corev1.Pod) bool { return status(p, container) != nil && cluster.Ran(status(p, container)) }); err != nil {
		return err
	}
	stream, err := c.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, Follow: true}).Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	said := &head{}
	if _, err := io.Copy(io.MultiWriter(w, said), stream); err != nil {
		return err
	}
	ended, err := c.await(ctx, pod, func(p *corev1.Pod) bool { return status(p, container).State.Terminated != nil })
	if err != nil {
		return err
	}
	switch code := status(ended, container).State.Terminated.ExitCode; code {
	case 0:
		return nil
	case exitNone:
		return nothing(cluster.Said(said.String()))
	default:
		return fmt.Errorf("its container ended with exit code %d", code)
	}
}

// lateError says where a pod stood when time was up.
type lateError string

func (e lateError) Error() string { return string(e) }

// await waits until done holds for a pod, or the pod will not get there.
func (c *collector) await(ctx context.Context, pod *corev1.Pod, done func(*corev1.Pod) bool) (*corev1.Pod, error) {
	var since time.Time
	trouble := "its pod has not started"
	for {
		now, err := c.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return nil, err
		}
		if err == nil {
			switch stuck := cluster.Trouble(now); {
			case done(now):
				return now, nil
			case now.Status.Phase == corev1.PodFailed || now.Status.Phase == corev1.PodSucceeded:
				return nil, fmt.Errorf("its pod has ended: %s", cluster.Said(now.Status.Reason+" "+now.Status.Message))
			case stuck == "":
				since = time.Time{}
			case since.IsZero():
				since, trouble = time.Now(), stuck
			case time.Since(since) > patience:
				return nil, errors.New("its pod does not start: " + stuck)
			}
		}
		select {
		case <-ctx.Done():
			return nil, lateError(trouble)
		case <-time.After(look):
		}
	}
}

// status is that of a container; nil where there is none yet.
func status(p *corev1.Pod, container string) *corev1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if p.Status.ContainerStatuses[i].Name == container {
			return &p.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// head keeps the beginning of what is written to it.
type head struct{ strings.Builder }

// Write implements [io.Writer].
func (h *head) Write(p []byte) (int, error) {
	const most = 1 << 10
	h.Builder.Write(p[:min(len(p), max(0, most-h.Len()))])
	return len(p), nil
}
