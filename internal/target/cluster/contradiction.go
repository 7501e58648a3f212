package cluster

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

var (
	// A kubelet on Windows takes its image from the registry's ProductName,
	// which says Windows but for these editions.
	windowsImage = regexp.MustCompile(`(?i)windows|hyper-v|azure stack hci|azure local`)
	// A Windows kernel's third part is the build; no Linux kernel's is as large.
	windowsKernel = regexp.MustCompile(`^\d+\.\d+\.\d{4,}(\.\d+)?$`)
)

// contradiction says how what a node reports about its operating system does not
// fit together, such as "reports linux, and is labelled windows"; "" where it
// does. What is not reported contradicts nothing.
func contradiction(n *corev1.Node) string {
	info := &n.Status.NodeInfo
	system, label := specs.OS(info.OperatingSystem), specs.OS(n.Labels[corev1.LabelOSStable])
	if system == "" {
		system = label
	}
	if label != "" && label != system {
		return fmt.Sprintf("reports %s, and is labelled %s", system, label)
	}
	if system != specs.Windows && system != specs.Linux {
		return ""
	}
	windows := system == specs.Windows
	if info.OSImage != "" && windowsImage.MatchString(info.OSImage) != windows {
		return fmt.Sprintf("reports %s, and the image %q", system, info.OSImage)
	}
	if info.KernelVersion != "" && windowsKernel.MatchString(info.KernelVersion) != windows {
		return fmt.Sprintf("reports %s, and the kernel %q", system, info.KernelVersion)
	}
	build := n.Labels[corev1.LabelWindowsBuild]
	if windows && build != "" && info.KernelVersion != "" && info.KernelVersion != build && !strings.HasPrefix(info.KernelVersion, build+".") {
		return fmt.Sprintf("reports Windows %s, and is labelled %s", info.KernelVersion, build)
	}
	return ""
}
