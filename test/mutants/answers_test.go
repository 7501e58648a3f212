package mutants_test

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/windows-op-readiness/windows-op-readiness/test/scripted"
)

// commands are those that the Windows pods of a script answer.
var commands = []string{"wget"}

// script is what Windows pods answer where nothing is broken. All of it is invented: no
// test of ours has run on Windows yet.
func script(pod *v1.Pod) (scripted.Answer, bool) {
	base, _, _ := strings.Cut(pod.Name, "-")
	if of := scripts[base]; of != nil {
		return of(pod)
	}
	return scripted.Answer{}, false
}

// scripts are the answers of pods by what their names begin with.
var scripts = map[string]scripted.Script{
	"defender":   defenderSays,
	"hcn":        hcnSays,
	"privileged": privilegedSays,
}

// says is the answer of a pod whose script has found that, as JSON.
func says(format string, args ...any) (scripted.Answer, bool) {
	return scripted.Answer{Source: scripted.Invented, Log: "op-readiness: " + fmt.Sprintf(format, args...) + "\r\n"}, true
}

// defenderSays is what four nodes say, each of which leaves containerd alone in a way of
// its own.
func defenderSays(pod *v1.Pod) (scripted.Answer, bool) {
	const containerd = `"containerd":"C:\\Program Files\\containerd\\containerd.exe","command":"\"C:\\Program Files\\containerd\\containerd.exe\" --run-service"`
	const folders = `"root":"\"C:\\\\ProgramData\\\\containerd\\\\root\"","state":"\"C:\\\\ProgramData\\\\containerd\\\\state\""`
	const moved = `"root":"'D:\\containerd\\root'","state":"'D:\\containerd\\state'"`
	switch pod.Name {
	case "defender-0":
		return says(`{"service":"Running","mode":"Normal","processes":["containerd.exe"],"paths":[],%s,%s}`, containerd, folders)
	case "defender-1":
		return says(`{"service":"Running","mode":"Normal","processes":["kubelet.exe"],"paths":["D:\\containerd"],%s,%s}`, containerd, moved)
	case "defender-2":
		return says(`{"service":"","mode":"","processes":[],"paths":[],%s,%s}`, containerd, folders)
	}
	return says(`{"service":"Running","mode":"Passive Mode","processes":[],"paths":[],%s,%s}`, containerd, folders)
}

// privilegedSays is what the host of a node of Windows Server 2022 can do, and what an
// ordinary container of agnhost cannot.
func privilegedSays(pod *v1.Pod) (scripted.Answer, bool) {
	made := fmt.Sprintf("read=op-readiness-%s left=0", pod.Namespace)
	switch pod.Name {
	case "privileged-host":
		return says(`{"found":{"services":"hns=Running vmcompute=Running","kubelet":"4242","systems":"1f6a 77b0","settings":%q,"group":%q,"event":"2026-01-01T00:00:00 EventLog 6013","build":"20348"},"failed":{}}`, made, made)
	case "privileged-control":
		return says(`{"found":{"settings":%q},"failed":{"services":"Cannot find any service with service name 'hns'.","kubelet":"Cannot find a process with the name \"kubelet\".","systems":"Unable to load DLL 'vmcompute.dll'","group":"The term 'Get-LocalGroup' is not recognized","event":"There is not an event log","build":"The term 'Get-CimInstance' is not recognized"}}`, made)
	}
	return scripted.Answer{}, false
}

// hcnSays is what is seen of host networks step by step, and what dials another pod.
func hcnSays(pod *v1.Pod) (scripted.Answer, bool) {
	with := func(port string) (scripted.Answer, bool) {
		return says(`{"failed":"","networks":[{"id":"a0","name":"nat"},{"id":"a1","name":"cbr0"},{"id":"b2","name":"op-readiness-%s"}],"own":[{"type":"Private","subnets":["192.0.2.0/28"]}],"endpoints":[{"address":"192.0.2.5","rules":["Block In 6 %s"]}]}`, pod.Namespace, port)
	}
	switch strings.TrimPrefix(pod.Name, "hcn-") {
	case "make", "read":
		return with("445")
	case "change", "read-changed":
		return with("139")
	case "before", "remove", "after", "cleanup":
		return says(`{"failed":"","networks":[{"id":"a0","name":"nat"},{"id":"a1","name":"cbr0"}],"own":[],"endpoints":[]}`)
	case "control":
		return says(`{"failed":"Unable to load DLL 'vmcompute.dll' or one of its dependencies","networks":[],"own":[],"endpoints":[]}`)
	case "client":
		return scripted.Answer{Source: scripted.Invented, Runs: true, Commands: dials("hcn-beside")}, true
	}
	return scripted.Answer{}, false
}

// dials answers wget, which asks netexec to dial, as netexec does where all dials reach
// the pod of that name.
func dials(name string) string {
	return fmt.Sprintf(`n=${5##*tries=}
printf '{"responses":["%[1]s"'
while [ "$n" -gt 1 ]; do printf ',"%[1]s"'; n=$((n-1)); done
printf ']}'
`, name)
}
