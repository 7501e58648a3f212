package judge

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// A process of the host, and one in an ordinary container.
const (
	windowsHost = `op-readiness: {"found": {"services": "hns=Running vmcompute=Running", "kubelet": "4242", "systems": "a b",
"settings": "read=op-readiness-1 left=0", "group": "read=op-readiness-1 left=0", "event": "2026-01-01T00:00:00 EventLog 6013", "build": "20348"}, "failed": {}}`
	linuxHost = `op-readiness: {"found": {"kubelet": "4242 4243", "systems": "7", "settings": "read=op-readiness-1 left=0", "build": "6.12.1"}, "failed": {}}`
	confined  = `op-readiness: {"found": {"settings": "read=op-readiness-1 left=0"}, "failed": {"services": "Cannot find any service", "kubelet": "", "systems": "no DLL", "build": "x"}}`
)

func readAttempts(t *testing.T, log string) *Attempts {
	t.Helper()
	a, err := ReadAttempts(strings.ReplaceAll(log, "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestPrivileged(t *testing.T) {
	windows, linux := &v1.Node{}, &v1.Node{}
	windows.Status.NodeInfo = v1.NodeSystemInfo{OperatingSystem: "windows", KernelVersion: "10.0.20348.3328"}
	linux.Status.NodeInfo = v1.NodeSystemInfo{OperatingSystem: "linux", KernelVersion: "6.12.1"}
	if problems := readAttempts(t, windowsHost).Privileged(v1.Windows, windows, "op-readiness-1"); len(problems) > 0 {
		t.Errorf("on Windows: %q", problems)
	}
	if problems := readAttempts(t, linuxHost).Privileged(v1.Linux, linux, "op-readiness-1"); len(problems) > 0 {
		t.Errorf("on Linux: %q", problems)
	}
	for change, want := range map[[2]string]string{
		{"vmcompute=Running", "vmcompute=Stopped"}:                                `services: it found "hns=Running vmcompute=Stopped"`,
		{`"kubelet": "4242"`, `"kubelet": ""`}:                                    `kubelet: it found ""`,
		{`"kubelet": "4242"`, `"kubelet": "kubelet"`}:                             `kubelet: it found "kubelet"`,
		{`"kubelet": "4242"`, `"kubelet": "-4"`}:                                  `kubelet: it found "-4"`,
		{`"systems": "a b"`, `"systems": ""`}:                                     `systems: it found ""`,
		{`left=0`, `left=1`}:                                                      `settings: it found "read=op-readiness-1 left=1"`,
		{`"group": "read=op-readiness-1`, `"group": "read=`}:                      `group: it found "read= left=0"`,
		{`"event": "2026-01-01T00:00:00 EventLog 6013"`, `"event": ""`}:           `event: it found ""`,
		{`20348`, `17763`}:                                                        `build: it found "17763"`,
		{`, "build": "20348"}, "failed": {}`, `}, "failed": {"build": "denied"}`}: `build: it failed: denied`,
		{`, "build": "20348"}`, `}`}:                                              `build: it was not tried`,
		{`"found": {"services": "hns=Running vmcompute=Running", `, `"found": {`}: `services: it was not tried`,
		{`"systems": "a b",`, ``}:                                                 `systems: it was not tried`,
	} {
		log := strings.Replace(strings.ReplaceAll(windowsHost, "\n", ""), change[0], change[1], 1)
		problems := readAttempts(t, log).Privileged(v1.Windows, windows, "op-readiness-1")
		if !slices.Equal(problems, []string{want}) {
			t.Errorf("%q instead of %q: %q, want %q", change[1], change[0], problems, want)
		}
	}
	nobody := &v1.Node{}
	if problems := readAttempts(t, strings.Replace(linuxHost, "6.12.1", "", 1)).Privileged(v1.Linux, nobody, "op-readiness-1"); !slices.Equal(problems, []string{`build: it found ""`}) {
		t.Errorf("without a build: %q", problems)
	}
}

func TestConfined(t *testing.T) {
	if problems := readAttempts(t, confined).Confined(v1.Windows); len(problems) > 0 {
		t.Errorf("a container that fails: %q", problems)
	}
	if problems := readAttempts(t, windowsHost).Confined(v1.Windows); len(problems) != 3 {
		t.Errorf("a container that can do all: %q", problems)
	}
	if problems := readAttempts(t, `op-readiness: {}`).Confined(v1.Windows); len(problems) != 3 || !strings.Contains(problems[0], "neither failed nor found") {
		t.Errorf("a container that tries nothing: %q", problems)
	}
	if problems := readAttempts(t, linuxHost).Confined(v1.Linux); len(problems) != 2 {
		t.Errorf("a Linux container that can do all: %q", problems)
	}
}

func FuzzReadAttempts(f *testing.F) {
	f.Add(strings.ReplaceAll(windowsHost, "\n", ""))
	f.Add(confined)
	f.Add(`op-readiness: {"found": {"kubelet": "1"}, "failed": {"kubelet": "x"}}`)
	f.Fuzz(func(t *testing.T, log string) {
		a, err := ReadAttempts(log)
		if err != nil {
			return
		}
		for _, os := range []v1.OSName{v1.Windows, v1.Linux} {
			if len(a.Confined(os)) == 0 && len(a.Privileged(os, &v1.Node{}, "")) == 0 {
				t.Errorf("%q is said to be of the host, and of a container", log)
			}
		}
	})
}
