//go:build unix

package lies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
)

// with is a test whose pod is another than the honest one's.
func with(change ...func(pod object)) lie {
	return lie{tests: bodies{first: func(_ ginkgo.SpecContext, p *program) {
		makes(p, p.namespace(), object{"e2e-run": p.runID}, web(change...))
	}}}
}

// container gives the pod's container, or an init container, another state.
func container(list, phase string, state object) func(pod object) {
	return func(pod object) {
		pod["status"] = object{"phase": phase, list: []any{object{"name": "web", "state": state}}}
		if list == "initContainerStatuses" {
			pod["status"].(object)["containerStatuses"] = []any{object{"name": "web", "state": object{"waiting": object{"reason": "PodInitializing"}}}}
		}
	}
}

func terminated(reason string, startedAt any) object {
	return object{"terminated": object{"exitCode": 128, "reason": reason, "startedAt": startedAt, "finishedAt": startedAt}}
}

const (
	containers = "containerStatuses"
	began      = "2026-08-01T12:00:00Z"
	epoch      = "1970-01-01T00:00:00Z"
)

// in is a test that makes its pod in a namespace with these labels, or in one
// that is not its own.
func in(labels func(p *program) object) lie {
	return lie{tests: bodies{first: func(_ ginkgo.SpecContext, p *program) { makes(p, p.namespace(), labels(p), web()) }}}
}

// noEvidence are passes that prove nothing, since no pod of theirs was seen to
// run on Windows.
var noEvidence = map[string]lie{
	"a pod that was only refused":                 with(func(pod object) { pod["status"] = object{"phase": "Failed", "reason": "NodeAffinity"} }),
	"a pod that is said to have succeeded":        with(func(pod object) { pod["status"] = object{"phase": "Succeeded"} }),
	"a pod that is said to run":                   with(func(pod object) { pod["status"] = object{"phase": "Running"} }),
	"a container that waits":                      with(container(containers, "Pending", object{"waiting": object{"reason": "ContainerCreating"}})),
	"a container that waits in a pod that runs":   with(container(containers, "Running", object{"waiting": object{"reason": "CrashLoopBackOff"}})),
	"a container that could not start":            with(container(containers, "Failed", terminated("StartError", epoch))),
	"a container that could not start, with time": with(container(containers, "Failed", terminated("StartError", began))),
	"a container that cannot run":                 with(container(containers, "Failed", terminated("ContainerCannotRun", began))),
	"a container that ended and never began":      with(container(containers, "Failed", terminated("Error", nil))),
	"a container that began in 1970":              with(container(containers, "Succeeded", terminated("Completed", epoch))),
	"an init container that could not start":      with(container("initContainerStatuses", "Failed", terminated("StartError", epoch))),
	"a pod on Linux":                              with(func(pod object) { pod["spec"].(object)["nodeName"] = "linux-0" }),
	"a pod on no node":                            with(func(pod object) { delete(pod["spec"].(object), "nodeName") }),
	"a pod on a node that is not there":           with(func(pod object) { pod["spec"].(object)["nodeName"] = "windows-9" }),
	"a pod of another name":                       with(func(pod object) { meta(pod)["name"] = "web-2" }),
	"a pod of another image": with(func(pod object) {
		pod["spec"].(object)["containers"] = []any{object{"name": "web", "image": "docker.io/library/nginx:1"}}
	}),
	"a namespace without a label":               in(func(*program) object { return nil }),
	"a namespace of another run":                in(func(*program) object { return object{"e2e-run": "theirs"} }),
	"a namespace of a run that is called alike": in(func(p *program) object { return object{"e2e-run": p.runID + "-2"} }),
	"a namespace with another label":            in(func(p *program) object { return object{"e2e-framework": p.runID} }),
	"no pod at all":                             {tests: bodies{first: func(ginkgo.SpecContext, *program) {}}},
	"a namespace that is only named": {tests: bodies{first: func(_ ginkgo.SpecContext, p *program) {
		ginkgo.By(`Destroying namespace "theirs" for this suite.`)
	}}},
	"a namespace that is printed": {tests: bodies{first: func(_ ginkgo.SpecContext, p *program) {
		fmt.Println(`  STEP: Destroying namespace "theirs" for this suite. @ 01/02/26 15:04:05.000`)
	}}},
	"the namespace of the test before": {tests: bodies{second: func(_ ginkgo.SpecContext, p *program) {
		ginkgo.By(fmt.Sprintf("Destroying namespace %q for this suite.", strings.TrimSuffix(p.namespace(), "2")+"1"))
	}}},
}

// evidence are passes of pods that ran on Windows, however shortly.
var evidence = map[string]lie{
	"a container that ran and ended":  with(container(containers, "Succeeded", terminated("Completed", began))),
	"a container that ran and failed": with(container(containers, "Failed", terminated("Error", began))),
	"an init container that ran":      with(container("initContainerStatuses", "Pending", terminated("Completed", began))),
	"a container that ran before, again": with(func(pod object) {
		pod["status"].(object)[containers].([]any)[0].(object)["lastState"] = terminated("Error", began)
	}),
}

func init() {
	for name, l := range noEvidence {
		tell(name, func(int) lie { return l })
	}
	for name, l := range evidence {
		tell(name, func(int) lie { return l })
	}
}

// theirs is a namespace of another user, with a pod that runs on Windows.
func (s *scene) theirs() {
	s.api.put("/api/v1/namespaces", object{"metadata": object{"name": "theirs", "labels": object{"e2e-run": "theirs"}}})
	pod := web()
	meta(pod)["namespace"] = "theirs"
	s.api.put("/api/v1/pods", pod)
}

func TestPodsThatProveNothing(t *testing.T) {
	t.Parallel()
	for name := range noEvidence {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, name)
			signals := make(chan said, 1)
			go func() { signals <- s.run() }()
			s.theirs()
			s.disbelieved(<-signals, "unproven")
		})
	}
	for name := range evidence {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, name)
			s.believed(s.run())
		})
	}
}

func TestNodesOnWhichNothingRuns(t *testing.T) {
	t.Parallel()
	info := func(n object) object { return n["status"].(object)["nodeInfo"].(object) }
	for what, c := range map[string]struct {
		change    func(n object)
		simulated bool
	}{
		"kwok's annotation":       {func(n object) { meta(n)["annotations"] = object{"kwok.x-k8s.io/node": "fake"} }, true},
		"kwok's label":            {func(n object) { meta(n)["labels"].(object)["type"] = "kwok" }, true},
		"no ids at all":           {func(n object) { clear(info(n), "machineID", "systemUUID", "bootID") }, true},
		"no machine id":           {func(n object) { clear(info(n), "machineID") }, false},
		"no machine id, no UUID":  {func(n object) { clear(info(n), "machineID", "systemUUID") }, false},
		"no boot id":              {func(n object) { clear(info(n), "bootID") }, false},
		"another type":            {func(n object) { meta(n)["labels"].(object)["type"] = "virtual" }, false},
		"a kubelet that is Linux": {func(n object) { info(n)["operatingSystem"] = "linux" }, true},
		"a label that says Linux": {func(n object) { meta(n)["labels"].(object)["kubernetes.io/os"] = "linux" }, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			nodes := realNodes()
			for _, n := range nodes {
				if strings.HasPrefix(textOf(meta(n)["name"]), "windows") {
					c.change(n)
				}
			}
			s := newScene(t, truth, nodes...)
			if got := s.run(); c.simulated {
				s.disbelieved(got)
			} else {
				s.believed(got)
			}
		})
	}
}

func clear(o object, keys ...string) {
	for _, k := range keys {
		o[k] = ""
	}
}

var neverStarts = tell("a pod that was never to start, and did", func(int) lie { return lie{} })

func TestAPodThatWasNeverToStart(t *testing.T) {
	t.Parallel()
	s := newScene(t, neverStarts)
	s.standard(specOf("Core.Network", map[string]string{"first": "{pods: ^web$, os: windows, starts: false}"}))
	s.disbelieved(s.run(), "unproven")
}
