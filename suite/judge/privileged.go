package judge

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Attempts are what a process tried: what it found, or why it failed.
type Attempts struct {
	Found  map[string]string `json:"found"`
	Failed map[string]string `json:"failed"`
}

// ReadAttempts reads them from the log of script privileged.
func ReadAttempts(log string) (*Attempts, error) {
	var a Attempts
	if err := answer(log, &a); err != nil {
		return nil, fmt.Errorf("script privileged: %w", err)
	}
	for what := range a.Found {
		if _, both := a.Failed[what]; both {
			return nil, fmt.Errorf("script privileged: attempt %s has failed, and has found something", what)
		}
	}
	return &a, nil
}

// privilege is one thing that a process of the host can do: good reports whether that
// was found on a node, by a script that was given a name.
type privilege struct {
	what string
	good func(found string, node *v1.Node, name string) bool
	// alone says that nobody but the host can do it.
	alone bool
}

// privileges are those of a system; what its script tries.
func privileges(os v1.OSName) []privilege {
	all := []privilege{
		{"kubelet", isProcess, true},
		{"systems", func(found string, _ *v1.Node, _ string) bool { return found != "" }, true},
		{"settings", isMade, false},
		{"build", isBuild, false},
	}
	if os == v1.Windows {
		all = append(all,
			privilege{"services", func(found string, _ *v1.Node, _ string) bool { return found == "hns=Running vmcompute=Running" }, true},
			privilege{"group", isMade, false},
			privilege{"event", func(found string, _ *v1.Node, _ string) bool { return found != "" }, false})
	}
	return all
}

// isProcess reports whether ids of processes were found.
func isProcess(found string, _ *v1.Node, _ string) bool {
	ids := strings.Fields(found)
	return len(ids) > 0 && !slices.ContainsFunc(ids, func(id string) bool {
		n, err := strconv.Atoi(id)
		return err != nil || n < 1
	})
}

// isMade reports whether something of that name was made, read and removed, and nothing
// of its kind is left.
func isMade(found string, _ *v1.Node, name string) bool { return found == "read="+name+" left=0" }

// isBuild reports whether it is the build of the node, as its kubelet says it: on
// Windows, the third number of the version.
func isBuild(found string, node *v1.Node, _ string) bool {
	kernel := node.Status.NodeInfo.KernelVersion
	if node.Status.NodeInfo.OperatingSystem == string(v1.Windows) {
		if parts := strings.Split(kernel, "."); len(parts) > 2 {
			kernel = parts[2]
		}
	}
	return found != "" && found == kernel
}

// Privileged returns what a process of a node's host could not do, or did otherwise than
// it is to, with that name. None is none.
func (a *Attempts) Privileged(os v1.OSName, node *v1.Node, name string) []string {
	var problems []string
	for _, p := range privileges(os) {
		found, ok := a.Found[p.what]
		failure, failed := a.Failed[p.what]
		switch {
		case failed:
			problems = append(problems, fmt.Sprintf("%s: it failed: %s", p.what, cut(failure)))
		case !ok:
			problems = append(problems, p.what+": it was not tried")
		case !p.good(found, node, name):
			problems = append(problems, fmt.Sprintf("%s: it found %q", p.what, cut(found)))
		}
	}
	return problems
}

// Confined returns what an ordinary container could do, and nobody but the host may; or
// did not try, which shows nothing. None is none.
func (a *Attempts) Confined(os v1.OSName) []string {
	var problems []string
	for _, p := range privileges(os) {
		if !p.alone {
			continue
		}
		if found := a.Found[p.what]; found != "" {
			problems = append(problems, fmt.Sprintf("%s: an ordinary container found %q", p.what, cut(found)))
		} else if _, tried := a.Failed[p.what]; !tried {
			problems = append(problems, fmt.Sprintf("%s: an ordinary container neither failed nor found anything", p.what))
		}
	}
	return problems
}
