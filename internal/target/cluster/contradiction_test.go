package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestContradiction(t *testing.T) {
	for _, tt := range []struct{ name, label, system, image, kernel, build, want string }{
		{"Ubuntu", "linux", "linux", "Ubuntu 24.04.3 LTS", "6.8.0-79-generic", "", ""},
		{"Azure Linux", "linux", "linux", "Microsoft Azure Linux 3.0", "6.6.96.2-2.azl3", "", ""},
		{"WSL", "linux", "linux", "Debian GNU/Linux 12 (bookworm)", "5.15.167.4-microsoft-standard-WSL2", "", ""},
		{"a Linux 10.0", "linux", "linux", "Fedora Linux 60", "10.0.12-300.fc60", "", ""},
		{"Windows Server", "windows", "windows", "Windows Server 2022 Datacenter", "10.0.20348.3328", "10.0.20348", ""},
		{"Windows without a revision", "windows", "windows", "Windows Server Datacenter", "10.0.26100", "10.0.26100", ""},
		{"Hyper-V Server", "windows", "windows", "Hyper-V Server 2019", "10.0.17763.7009", "10.0.17763", ""},
		{"no more than a label", "windows", "", "", "", "", ""},
		{"nothing", "", "", "", "", "", ""},
		{"a label that lies", "windows", "linux", "Ubuntu 24.04.3 LTS", "6.8.0", "", "reports linux, and is labelled windows"},
		{"all lie but the image", "windows", "windows", "Ubuntu 24.04.3 LTS", "10.0.20348.1234", "10.0.20348", `reports windows, and the image "Ubuntu 24.04.3 LTS"`},
		{"all lie but the kernel", "windows", "windows", "Windows Server 2022 Datacenter", "6.8.0-79-generic", "", `reports windows, and the kernel "6.8.0-79-generic"`},
		{"Windows that says Linux", "linux", "linux", "Windows Server 2022 Datacenter", "10.0.20348.1", "", `reports linux, and the image "Windows Server 2022 Datacenter"`},
		{"Linux with a kernel of Windows", "linux", "linux", "Ubuntu 24.04.3 LTS", "10.0.20348.1", "", `reports linux, and the kernel "10.0.20348.1"`},
		{"a build that lies", "windows", "windows", "Windows Server 2019 Datacenter", "10.0.17763.7009", "10.0.20348", "reports Windows 10.0.17763.7009, and is labelled 10.0.20348"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := &corev1.Node{}
			n.Labels = map[string]string{corev1.LabelOSStable: tt.label, corev1.LabelWindowsBuild: tt.build}
			n.Status.NodeInfo = corev1.NodeSystemInfo{OperatingSystem: tt.system, OSImage: tt.image, KernelVersion: tt.kernel}
			if got := contradiction(n); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if facts := nodeFacts(n); tt.want != "" && (facts.OS != "" || facts.Contradiction != tt.want) {
				t.Errorf("a node that contradicts itself counts as %q, for %q", facts.OS, facts.Contradiction)
			}
		})
	}
}
