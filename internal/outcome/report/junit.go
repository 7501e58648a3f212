package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/junit"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// The types of failures in our JUnit, beside the failures of tests themselves.
const (
	failedType   = "failed"
	unprovenType = "unproven"
	errorType    = "error"
)

// runContext is the JUnit context of what failed outside of any case.
const runContext = "run"

// JUnit renders a judgement as JUnit files, one or more a category, and one
// for what failed outside of any test.
//
// A test is named "<case id> <test name>", once for each case that it serves;
// attempts are repeated, which TestGrid shows as flaky. A case without a test
// is one entry named by its id. What did not run is skipped, with the reason
// in the body; what is unproven or in error is a failure of that type. A trial is
// skipped however it ended, and says so: a reader of JUnit knows no column of its
// own for it.
func JUnit(j *verdict.Judgement) ([]junit.File, error) {
	var files []junit.File
	for _, category := range j.Categories {
		var cases []junit.Case
		for i := range j.Cases {
			if c := &j.Cases[i]; c.Case.Category == category.Category {
				cases = append(cases, junitCases(c)...)
			}
		}
		part, err := junit.Split(Context(category.Category), cases)
		if err != nil {
			return nil, fmt.Errorf("JUnit of %s: %w", category.Category, err)
		}
		files = append(files, part...)
	}
	var cases []junit.Case
	for _, s := range j.Suites {
		cases = append(cases, junit.Case{
			Name:    s.Name(),
			Failure: failure(errorType, "", s.Message),
		})
	}
	part, err := junit.Split(runContext, cases)
	if err != nil {
		return nil, fmt.Errorf("JUnit of the run: %w", err)
	}
	return append(files, part...), nil
}

// Context is a category as a JUnit context, which TestGrid reads from a file's
// name: lower case, and without an underscore.
func Context(c specs.Category) string {
	return strings.ToLower(strings.ReplaceAll(string(c), ".", "-"))
}

func junitCases(c *verdict.CaseResult) []junit.Case {
	cases := attemptCases(c)
	if c.Case.Kind != specs.Trial {
		return cases
	}
	for i := range cases {
		one := &cases[i]
		text := string(verdict.Passed)
		switch {
		case one.Failure != nil:
			text = strings.TrimSpace(one.Failure.Type + ": " + one.Failure.Message + "\n" + one.Failure.Body)
		case one.Skipped != nil:
			text = one.Skipped.Body
		}
		one.Failure, one.Skipped = nil, &junit.Detail{Body: "on trial, which decides nothing: " + text}
	}
	return cases
}

// attemptCases are the attempts of a case's tests.
func attemptCases(c *verdict.CaseResult) []junit.Case {
	properties := []junit.Property{
		{Name: "requirement", Value: c.Case.Requirement},
		{Name: "proof", Value: string(c.Case.Proof)},
		{Name: "outcome", Value: string(c.Outcome)},
	}
	if len(c.Images) > 0 {
		properties = append(properties, junit.Property{Name: "other-images", Value: strings.Join(c.Images, ", ")})
	}
	if len(c.Tests) == 0 {
		one := junit.Case{Name: c.Case.ID, Properties: properties}
		detail(&one, c.Outcome, c.Reason)
		return []junit.Case{one}
	}
	var out []junit.Case
	for _, t := range c.Tests {
		name := c.Case.ID + " " + t.Test.Name
		for i, a := range t.Attempts {
			one := junit.Case{Name: name, Time: a.Seconds, Properties: properties}
			if i < len(t.Observed) {
				one.Properties = append(slices.Clip(properties), observed(&t.Observed[i])...)
			}
			for _, m := range a.Measured {
				one.Properties = append(slices.Clip(one.Properties), junit.Property{Name: "measurement", Value: m.String()})
			}
			switch {
			case a.State == result.TestPassed && c.Outcome == verdict.Unproven:
				detail(&one, verdict.Unproven, c.Reason)
			case a.State == result.TestFailed:
				detail(&one, verdict.Failed, a.Message)
			case a.State == result.TestSkipped:
				detail(&one, verdict.NotTested, "the test skipped itself: "+a.Message)
			case a.State == result.TestError:
				detail(&one, verdict.Error, a.Message)
			}
			out = append(out, one)
		}
		if len(t.Attempts) == 0 {
			one := junit.Case{Name: name, Properties: properties}
			detail(&one, t.Outcome, t.Reason)
			out = append(out, one)
		}
	}
	return out
}

// maxPods is how many pods of an attempt JUnit names; results.jsonl has all.
const maxPods = 50

// observed is the evidence of one attempt: where its pods ran, each pod, and why
// these may not be all.
func observed(o *verdict.Observation) []junit.Property {
	var out []junit.Property
	add := func(name, value string) {
		if value != "" {
			out = append(out, junit.Property{Name: name, Value: value})
		}
	}
	add("evidence", o.Evidence)
	add("unobserved", o.Unobserved)
	for i := range o.Pods {
		if i == maxPods {
			add("pods", fmt.Sprintf("%d more", len(o.Pods)-i))
			break
		}
		add("pod", podText(&o.Pods[i]))
	}
	return out
}

// podText is a pod in one line: "ns/name: node w-0, windows 10.0.20348, runtime
// class x; images a, b; Pending, Running".
func podText(p *result.Pod) string {
	parts := []string{"no node"}
	if p.Node != "" {
		node := []string{"node " + p.Node}
		if system := strings.TrimSpace(string(p.OS) + " " + p.WindowsBuild); system != "" {
			node = append(node, system)
		}
		if p.Simulated {
			node = append(node, "simulated")
		}
		parts[0] = strings.Join(node, ", ")
	}
	if p.RuntimeClass != "" {
		parts[0] += ", runtime class " + p.RuntimeClass
	}
	if len(p.Images) > 0 {
		parts = append(parts, "images "+strings.Join(p.Images, ", "))
	}
	if len(p.Phases) > 0 {
		parts = append(parts, strings.Join(p.Phases, ", "))
	}
	if p.SchedulingFailure != "" {
		parts = append(parts, "not scheduled: "+p.SchedulingFailure)
	}
	return short(fmt.Sprintf("%s/%s: %s", p.Namespace, p.Name, strings.Join(parts, "; ")), maxText)
}

// detail says in a JUnit case how it ended.
//
// TestGrid, Spyglass and others show the attribute and the body one after the
// other, so neither says again what the other has. TestGrid shows the first and
// the last 70 bytes of both together, and no type; so what ended otherwise than
// a test of Kubernetes can says so at the beginning.
func detail(c *junit.Case, outcome verdict.Outcome, reason string) {
	switch outcome {
	case verdict.Passed, verdict.Flaky:
	case verdict.Failed:
		c.Failure = failure(failedType, "", cmp.Or(reason, failedType))
	case verdict.Unproven:
		c.Failure = failure(unprovenType, unprovenType+": ", reason)
	case verdict.Error:
		c.Failure = failure(errorType, errorType+": ", reason)
	default:
		// TestGrid drops what is skipped with an empty body.
		text := string(outcome)
		if reason != "" {
			text += ": " + reason
		}
		c.Skipped = &junit.Detail{Body: text}
	}
}

// maxMessage is about how long, in bytes, the attribute of a failure gets.
const maxMessage = 500

// failure is a failure whose attribute is the first line of what a test said,
// after prefix, and whose body is the rest: where ginkgo says that it was comes
// last.
func failure(kind, prefix, said string) *junit.Detail {
	message, rest, _ := strings.Cut(gist(said), "\n")
	if len(message) > maxMessage {
		cut := text.Head(message, maxMessage)
		if space := strings.LastIndexByte(cut, ' '); space > maxMessage/2 {
			cut = cut[:space]
		}
		rest = "… " + strings.TrimSpace(message[len(cut):]) + "\n" + rest
		message = cut + " …"
	}
	message = strings.TrimSuffix(prefix+message, ": ")
	var where []string
	for _, line := range nodeLine.FindAllString(said, -1) {
		where = append(where, strings.TrimSpace(line))
	}
	body := strings.Trim(strings.Trim(rest, "\n")+"\n\n"+strings.Join(where, "\n"), "\n")
	return &junit.Detail{Message: message, Type: kind, Body: body}
}
