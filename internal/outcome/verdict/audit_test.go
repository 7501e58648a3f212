package verdict_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// role is one placement of one case in one of its tests.
type role struct {
	c     *result.PlannedCase
	test  string
	place specs.Placement
}

func roles(p *result.Plan) []role {
	var all []role
	for i := range p.Cases {
		c := &p.Cases[i]
		for _, id := range c.TestIDs {
			for _, place := range c.Conditions.Placement {
				all = append(all, role{c, id, place})
			}
		}
	}
	return all
}

// change replaces the pods of the role that run on os ("" is any), by what to
// makes of each.
func (r role) change(base *result.Run, os specs.OS, to func(p result.Pod) []result.Pod) *result.Run {
	re := regexp.MustCompile(r.place.Pods)
	run := copyOf(base)
	run.Pods = nil
	for _, p := range base.Pods {
		if p.Test == r.test && re.MatchString(p.Name) && (os == "" || p.OS == os) {
			run.Pods = append(run.Pods, to(p)...)
		} else {
			run.Pods = append(run.Pods, p)
		}
	}
	return run
}

func on(os specs.OS) func(p result.Pod) []result.Pod {
	return func(p result.Pod) []result.Pod {
		p.OS, p.Node = os, string(os)+"-1"
		return []result.Pod{p}
	}
}

func gone(result.Pod) []result.Pod { return nil }

func never(p result.Pod) []result.Pod {
	p.Node, p.OS = "", ""
	return []result.Pod{p}
}

func other(os specs.OS) specs.OS {
	if os == specs.Windows {
		return specs.Linux
	}
	return specs.Windows
}

func TestEveryRequiredPlacementCounts(t *testing.T) {
	p := planOf(t, result.Selection{Additional: true}, 1)
	base := ideal(t, p, 1)
	checked := 0
	for _, r := range roles(p) {
		changes := map[string]*result.Run{
			"not observed":     r.change(base, "", gone),
			"never on a node":  nil,
			"not fully seen":   copyOf(base),
			"of another test":  r.change(base, "", func(p result.Pod) []result.Pod { p.Test = "0"; return []result.Pod{p} }),
			"of another try":   r.change(base, "", func(p result.Pod) []result.Pod { p.Attempt = 7; return []result.Pod{p} }),
			"by another name":  r.change(base, "", func(p result.Pod) []result.Pod { p.Name = "_"; return []result.Pod{p} }),
			"on simulated too": nil,
		}
		if r.place.NeverStarts {
			changes["started"] = r.change(base, "", func(p result.Pod) []result.Pod { p.Started = true; return []result.Pod{p} })
			changes["started the second time"] = r.change(base, "", func(p result.Pod) []result.Pod {
				q := p
				q.Started = true
				return []result.Pod{p, q}
			})
		} else {
			changes["never on a node"] = r.change(base, "", never)
		}
		if r.c.NeedsContainers() && !r.place.NeverStarts {
			// The kubelet rejects pods that way.
			changes["failed before a container ran"] = r.change(base, "", func(p result.Pod) []result.Pod {
				p.Started, p.Phases = false, []string{"Pending", "Failed"}
				return []result.Pod{p}
			})
			changes["running, says the phase alone"] = r.change(base, "", func(p result.Pod) []result.Pod { p.Started = false; return []result.Pod{p} })
		}
		seen := slices.Clone(base.Attempts[r.test])
		seen[0].Unobserved = "the watch broke"
		changes["not fully seen"].Attempts[r.test] = seen
		if r.c.NeedsContainers() {
			changes["on simulated too"] = r.change(base, "", func(p result.Pod) []result.Pod {
				q := p
				q.Simulated = true
				return []result.Pod{p, q}
			})
		}
		for _, os := range r.place.Systems() {
			changes["on unknown instead of "+string(os)] = r.change(base, os, on(""))
			changes["not on "+string(os)] = r.change(base, os, gone)
			changes["on another system than "+string(os)] = r.change(base, os, on(other(os)))
			if r.place.OS != specs.AnyOS {
				// Also where a pod of the same name took its place later.
				changes["first elsewhere than on "+string(os)] = r.change(base, os, func(p result.Pod) []result.Pod {
					return append(on(other(os))(p), p)
				})
				changes["first on unknown, then on "+string(os)] = r.change(base, os, func(p result.Pod) []result.Pod {
					return append(on("")(p), p)
				})
			}
		}
		for what, run := range changes {
			if run == nil {
				continue
			}
			checked++
			what = fmt.Sprintf("%s: pods %s %s", r.c.ID, r.place.Pods, what)
			var j *verdict.Judgement
			// Other cases may share the test, and with it the loss.
			switch {
			case r.c.Gates():
				j = inconclusive(t, what, run)
			case gates(p, p.Test(r.test)):
				j = verdict.Judge(run)
			default:
				j = ready(t, what, run)
			}
			if c := outcomeOf(t, j, r.c.ID); c.Outcome != verdict.Unproven || c.Reason == "" {
				t.Errorf("%s: %s is %s (%s)", what, r.c.ID, c.Outcome, c.Reason)
			}
		}
	}
	if checked < 200 {
		t.Errorf("only %d changes were checked", checked)
	}
}

func TestWhatARoleDoesNotAskIsFree(t *testing.T) {
	p := planOf(t, result.Selection{}, 1)
	base := ideal(t, p, 1)
	for _, r := range roles(p) {
		if r.place.OS != specs.AnyOS || len(r.place.Systems()) > 0 {
			continue
		}
		for _, os := range []specs.OS{specs.Linux, specs.Windows, ""} {
			ready(t, fmt.Sprintf("%s: pods %s on %q", r.c.ID, r.place.Pods, os), r.change(base, "", on(os)))
		}
	}
	// Pods that play no role may be anywhere.
	run := copyOf(base)
	for i := range p.Tests {
		run.Pods = append(run.Pods, result.Pod{Test: p.Tests[i].ID, Attempt: 1, Name: "_helper", Node: "linux-0", OS: specs.Linux})
	}
	ready(t, "helpers on Linux", run)
}

func TestForbiddenImages(t *testing.T) {
	p := planOf(t, result.Selection{Additional: true}, 1)
	base := ideal(t, p, 1)
	allow := func(c *result.PlannedCase, image string) bool {
		return slices.ContainsFunc(c.Images, func(e specs.ImageException) bool { return e.Image == image })
	}
	with := func(id, image string, os specs.OS) *result.Run {
		run := copyOf(base)
		run.Pods = append(run.Pods, result.Pod{Test: id, Attempt: 1, Namespace: "z", Name: "_helper", Node: "n", OS: os, WindowsBuild: map[specs.OS]string{specs.Windows: "10.0.20348"}[os], Images: []string{image}})
		return run
	}
	for i := range p.Cases {
		c := &p.Cases[i]
		for _, id := range c.TestIDs {
			// The images of Linux helpers are free, and so are those that never ran.
			ready(t, c.ID+" with a Linux helper", with(id, "docker.io/library/busybox:1", specs.Linux))
			for _, os := range []specs.OS{specs.Windows, ""} {
				what := fmt.Sprintf("%s with busybox on %q", c.ID, os)
				j := verdict.Judge(with(id, "docker.io/library/busybox:1", os))
				got := outcomeOf(t, j, c.ID)
				switch {
				case c.Kind != specs.Requirement: // the rule is not made for it
				case c.Kind != specs.Requirement || c.Proof != specs.ProofFull || allow(c, "busybox"):
					if got.Outcome != verdict.Passed {
						t.Errorf("%s: %s (%s)", what, got.Outcome, got.Reason)
					}
				case got.Outcome != verdict.Unproven || !strings.Contains(got.Reason, "docker.io/library/busybox:1"):
					t.Errorf("%s: %s (%s)", what, got.Outcome, got.Reason)
				case c.Gates() && (j.Verdict != verdict.Inconclusive || outcomeOf(t, j, "cluster-test-image-agnhost").Outcome != verdict.Unproven):
					t.Errorf("%s: %s, %v", what, j.Verdict, j.Reasons)
				}
				if c.Gates() && c.Category.Core() && got.Outcome == verdict.Unproven && outcomeOf(t, j, "cluster-core-images-only").Outcome != verdict.Unproven {
					t.Errorf("%s: the rule of Core does not see it", what)
				}
			}
		}
	}
	first := caseOf(p, "core-storage-hostpath-write").TestIDs[0]
	for _, image := range []string{"agnhost", "r.example:5000/a/b/agnhost:2@sha256:12", "pause", "registry.k8s.io/pause:3.10"} {
		ready(t, image, with(first, image, specs.Windows))
	}
	for _, image := range []string{"", "agnhost-evil", "agnhost/busybox:1", "pause.exe:1", "docker.io/agnhost/x"} {
		inconclusive(t, fmt.Sprintf("image %q", image), with(first, image, specs.Windows))
	}
}

// Hundreds of thousands of pods are judged, and their problems can be read.
func TestManyPodsInTheWrongPlace(t *testing.T) {
	p := planOf(t, result.Selection{Cases: []string{"core-storage-hostpath-write"}}, 1)
	base := ideal(t, p, 1)
	r := roles(p)[0]
	const many = 100_000
	run := r.change(base, "", func(p result.Pod) []result.Pod {
		pods := make([]result.Pod, many)
		for i := range pods {
			pods[i] = on(other(r.place.OS))(p)[0]
			pods[i].Name = fmt.Sprintf("%s-%d", p.Name, i)
		}
		return pods
	})
	c := outcomeOf(t, verdict.Judge(run), r.c.ID)
	for _, text := range []string{"-0 ran on", "; and 99997 more pods", "; no pod "} {
		if !strings.Contains(c.Reason, text) {
			t.Errorf("the reason %q does not say %q", c.Reason, text)
		}
	}
	if c.Outcome != verdict.Unproven || len(c.Reason) > 2000 {
		t.Errorf("%s, for a reason of %d bytes", c.Outcome, len(c.Reason))
	}
}

func TestARuntimeClassThatWasAskedForMustBeSeen(t *testing.T) {
	p := planOf(t, result.Selection{}, 1)
	c := caseOf(p, "core-network-custom-dns")
	c.Conditions.RuntimeClass = "hyperv"
	run := ideal(t, p, 1)
	if got := outcomeOf(t, verdict.Judge(run), c.ID); got.Outcome != verdict.Unproven || !strings.Contains(got.Reason, "hyperv") {
		t.Errorf("without: %s (%s)", got.Outcome, got.Reason)
	}
	for i := range run.Pods {
		run.Pods[i].RuntimeClass = "hyperv"
	}
	if got := outcomeOf(t, verdict.Judge(run), c.ID); got.Outcome != verdict.Passed {
		t.Errorf("with: %s (%s)", got.Outcome, got.Reason)
	}
}

func TestEvidenceTellsWherePodsRan(t *testing.T) {
	p := planOf(t, result.Selection{}, 1)
	j := verdict.Judge(ideal(t, p, 1))
	if got, want := outcomeOf(t, j, "core-network-pod-ip-win-to-linux").Evidence, "2 pods: 1 on Windows ltsc2022, 1 on Linux"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Judging again with the very cases of the plan changes nothing, on the whole
// cluster and in a shard.
func TestRespecifiedWithItsOwnCasesARunIsTheSame(t *testing.T) {
	set, err := specs.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	standard, err := set.For(version)
	if err != nil {
		t.Fatal(err)
	}
	for _, shards := range []int{1, 3} {
		p := planOf(t, result.Selection{Additional: true, Trial: true}, shards)
		for shard := 1; shard <= shards; shard++ {
			run := ideal(t, p, shard)
			again, err := verdict.Respecify(run, standard, standard, "")
			if err != nil {
				t.Fatal(err)
			}
			before, now := verdict.Judge(run), verdict.Judge(again)
			if changes := verdict.Changes(before, now); len(changes) > 0 || now.Verdict != before.Verdict || now.Counts != before.Counts {
				t.Errorf("shard %d of %d: %s (%s), was %s (%s): %v", shard, shards, now.Verdict, now.Counts, before.Verdict, before.Counts, changes)
			}
			if len(again.Plan.Cases) != len(p.Cases) || &again.Plan.Cases[0] == &p.Cases[0] {
				t.Errorf("shard %d of %d: %d cases, want %d", shard, shards, len(again.Plan.Cases), len(p.Cases))
			}
		}
	}
}
