package mutants_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	v1 "k8s.io/api/core/v1"

	"github.com/windows-op-readiness/windows-op-readiness/test/powershell"
	"github.com/windows-op-readiness/windows-op-readiness/test/scripted"
)

// watched is the script of a bed, which looks at what Windows pods are really told to
// run: PowerShell that Windows can start and that parses. It is judged when the test
// ends.
func watched(t *testing.T) scripted.Script {
	t.Helper()
	var mu sync.Mutex
	told := map[string]string{}
	t.Cleanup(func() {
		if len(told) == 0 && !t.Skipped() {
			t.Error("no pod was told to run PowerShell")
		}
		parser, err := powershell.Find()
		if err != nil {
			t.Logf("PowerShell is NOT parsed: %v", err)
			return
		}
		found, err := parser.Errors(context.WithoutCancel(t.Context()), told)
		if err != nil {
			t.Error(err)
		}
		for pod, errors := range found {
			if len(errors) > 0 {
				t.Errorf("pod %s is told to run what is no PowerShell: %v\n%s", pod, errors, told[pod])
			}
		}
	})
	return func(pod *v1.Pod) (scripted.Answer, bool) {
		if text, err := toldToRun(pod); err != nil {
			t.Errorf("pod %s: %v", pod.Name, err)
		} else if text != "" {
			mu.Lock()
			told[pod.Name] = text
			mu.Unlock()
		}
		return script(pod)
	}
}

// toldToRun returns the PowerShell that a pod's container is to run, as it will be read
// there; "" where it runs something else.
func toldToRun(pod *v1.Pod) (string, error) {
	command := pod.Spec.Containers[0].Command
	if len(command) == 0 || !strings.Contains(command[0], "PowerShell") {
		return "", nil
	}
	host := pod.Spec.SecurityContext != nil && pod.Spec.SecurityContext.WindowsOptions != nil && *pod.Spec.SecurityContext.WindowsOptions.HostProcess
	if program := strings.HasSuffix(command[0], `\powershell.exe`); program != host {
		return "", fmt.Errorf("it is a HostProcess pod: %v, and is told to run %s", host, command[0])
	}
	const most = 32767 // characters, of a command line of Windows
	if n := len(strings.Join(command, " ")); n > most {
		return "", fmt.Errorf("its command line has %d characters, and Windows takes %d", n, most)
	}
	encoded, err := base64.StdEncoding.DecodeString(command[len(command)-1])
	if err != nil || len(encoded)%2 != 0 {
		return "", fmt.Errorf("its script is not base64 of UTF-16, but %q", command[len(command)-1])
	}
	units := make([]uint16, len(encoded)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(encoded[2*i:])
	}
	return string(utf16.Decode(units)), nil
}

func TestToldToRun(t *testing.T) {
	t.Parallel()
	const core, windows = `C:\Program Files\PowerShell\pwsh.exe`, `C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`
	const text = "JABuAA==" // $n
	for what, c := range map[string]struct {
		command []string
		host    bool
		want    string
		wrong   string
	}{
		"in a HostProcess pod":        {[]string{windows, "-EncodedCommand", text}, true, "$n", ""},
		"in an ordinary pod":          {[]string{core, "-EncodedCommand", text}, false, "$n", ""},
		"another program":             {[]string{"cmd", "/C", "dir"}, true, "", ""},
		"nothing":                     {nil, false, "", ""},
		"the host's in an ordinary":   {[]string{windows, "-EncodedCommand", text}, false, "", "is told to run C:"},
		"the image's on the host":     {[]string{core, "-EncodedCommand", text}, true, "", "is told to run C:"},
		"a script that is no base64":  {[]string{core, "-EncodedCommand", "$n"}, false, "", "is not base64 of UTF-16"},
		"half a character":            {[]string{core, "-EncodedCommand", "JABu"}, false, "", "is not base64 of UTF-16"},
		"more than Windows can start": {[]string{core, "-EncodedCommand", strings.Repeat("JABu", 8200)}, false, "", "and Windows takes 32767"},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Command: c.command}}}}
		if c.host {
			pod.Spec.SecurityContext = &v1.PodSecurityContext{WindowsOptions: &v1.WindowsSecurityContextOptions{HostProcess: new(true)}}
		}
		got, err := toldToRun(pod)
		if got != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %q, %v; want %q, %q", what, got, err, c.want, c.wrong)
		}
	}
}
