package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/lease"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight/probe"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// checker gathers findings about facts.
type checker struct {
	*Facts
	// cluster is what a verdict would rest on, as far as it is known.
	cluster  *result.Facts
	findings []Finding
}

// Check says what the facts mean for a run. It touches nothing else.
func Check(f *Facts) []Finding {
	c := &checker{Facts: f, cluster: f.known()}
	c.server()
	c.nodes()
	c.network()
	c.features()
	c.run()
	c.probes()
	c.declarations()
	for i := range c.findings {
		found := &c.findings[i]
		found.Found = redact.String(shown.Line(found.Found))
		found.Requirements = waiting(f.Standard, found.Concerns)
	}
	order := []Group{groupServer, groupNodes, groupNetwork, groupFeatures, groupRun}
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return slices.Index(order, a.Group) - slices.Index(order, b.Group)
	})
	return c.findings
}

func (c *checker) add(f Finding) { c.findings = append(c.findings, f) }

// unknown adds a finding for what could not be read.
func (c *checker) unknown(f Finding, err error) {
	f.Status = Unknown
	f.Found = "not known: " + err.Error()
	f.Refuses = f.Vital
	if f.Fix == "" {
		f.Fix = "grant what the error names (the role: op-readiness preflight --print-rbac), or find the cause and ask again"
	}
	c.add(f)
}

func (c *checker) without(capability string) bool {
	return slices.Contains(c.Declared.Without, capability)
}

// declared adds the finding of a feature that the user says is absent. fact is
// what the API shows to the contrary, if anything.
func (c *checker) declaredAbsent(f Finding, flag, fact string) {
	f.Status, f.How = OK, Declared
	f.Found = fmt.Sprintf("declared absent (%s)", flag)
	if fact != "" {
		f.Status = Warning
		f.Found += ", but " + fact
		f.Fix = fmt.Sprintf("leave %s out, unless the cluster really is without", flag)
	}
	c.add(f)
}

func (c *checker) server() {
	f := Finding{ID: "server-version", Group: groupServer, How: "GET /version", Vital: true}
	if c.Version.Err != nil {
		c.unknown(f, c.Version.Err)
		return
	}
	f.Status = OK
	f.Found = "Kubernetes " + c.Version.Value
	known := strings.Join(c.Catalogues, ", ")
	v, err := specs.ParseVersion(c.Version.Value)
	switch {
	case err != nil:
		f.Status = Warning
		f.Found = fmt.Sprintf("%q, which is not a Kubernetes version", c.Version.Value)
		f.Fix = "name the version for which tests are chosen: run --kubernetes-version"
	case slices.Contains(c.Catalogues, "v"+v.String()):
		f.Found += ", whose list of tests is checked against the standard"
	case slices.ContainsFunc(c.Catalogues, func(known string) bool {
		k, err := specs.ParseVersion(known)
		return err == nil && k.Major == v.Major && k.Minor == v.Minor
	}):
		f.Found += fmt.Sprintf("; a list of tests of %s is checked against the standard", v.MinorString())
	default:
		f.Status = Warning
		f.Found += fmt.Sprintf("; the standard is checked against the tests of %s only", known)
		if _, err := specs.CheckVersion(c.Version.Value); err != nil {
			f.Status = Failing
			f.Fix = "upgrade the cluster: a run of the standard is refused, for nothing would be tested"
			break
		}
		f.Fix = "check that the standard selects the right tests of this version: op-readiness specs lint --test-list"
	}
	c.add(f)
}

// purposes say what the permissions are for, and what suffers without.
var purposes = []struct {
	purpose Purpose
	id      string
	what    string
	status  Status
}{
	{ForSuite, "permission-suite", "what the standard's tests do", Failing},
	{ForAdditional, "permission-additional", "what the tests beyond the standard do (run --additional)", Warning},
	{ForEvidence, "permission-evidence", "watching pods and namespaces, without which no placement is proven", Failing},
	{ForSteering, "permission-steering", "steering pods to an operating system", Failing},
	{ForCleanup, "permission-cleanup", "removing what tests leave behind", Failing},
	{ForLock, "permission-lock", "the lock that keeps two runs apart, in namespace " + lease.Namespace, Failing},
}

func (c *checker) run() {
	for _, p := range purposes {
		if p.purpose == ForSteering && c.Steering.Err == nil && c.Steering.Value == "" || slices.Contains(c.NotNeeded, p.purpose) {
			continue
		}
		f := Finding{ID: p.id, Group: groupRun, Status: OK, How: "SelfSubjectAccessReview", Found: "allowed: " + p.what}
		if p.purpose == ForSteering {
			f.Concerns = []string{"steer"}
		}
		if c.Missing.Err != nil {
			c.unknown(f, c.Missing.Err)
			continue
		}
		lacking := slices.DeleteFunc(slices.Clone(c.Missing.Value), func(n Need) bool { return n.For != p.purpose })
		if len(lacking) > 0 {
			f.Status, f.Refuses = p.status, p.status == Failing
			f.Found = fmt.Sprintf("%d permissions are missing for %s: %s", len(lacking), p.what, describe(lacking))
			f.Fix = "grant them: op-readiness preflight --print-rbac | kubectl apply -f -, and bind the ClusterRole op-readiness to the user"
		}
		c.add(f)
	}
	c.steering()
	c.kubectl()
	c.provider()
	c.lock()
	c.leftovers()
}

// lock says who has the cluster; the run that asks is not in its own way.
func (c *checker) lock() {
	f := Finding{ID: "cluster-lock", Group: groupRun, Status: OK, How: fmt.Sprintf("Lease %s/%s", lease.Namespace, lease.Name), Found: "nobody has the cluster"}
	switch held := c.Held.Value; {
	case slices.Contains(c.NotNeeded, ForLock):
		f.How, f.Found = Declared, "not taken (--lock=false)"
	case c.Held.Err != nil:
		c.unknown(f, c.Held.Err)
		return
	case held == nil:
	case c.RunID != "" && held.Holder.RunID == c.RunID:
		f.Found = "this run has the cluster: " + held.Who()
	case held.Late(c.Now):
		f.Status, f.Found = Warning, held.Who()+"; by its clock it is late, and may be dead"
		f.Fix = "start the run: it waits for the lock of a dead one to expire"
	default:
		f.Status, f.Found = Warning, held.Who()
		f.Fix = "wait for that run (run --wait), or do not disturb it"
	}
	c.add(f)
}

func (c *checker) steering() {
	f := Finding{ID: "steering", Group: groupRun, How: "API discovery", Concerns: []string{"steer"}}
	switch {
	case c.without("steer"):
		f.Status, f.How, f.Found = Failing, Declared, "declared absent (--without steer)"
		f.Fix = "leave --without steer out: pods that say nothing about their operating system prove nothing without"
	case c.Steer == "off":
		f.Status, f.How, f.Found = Failing, Declared, "switched off (--steer=off)"
		f.Fix = "leave --steer=off out: pods that say nothing about their operating system prove nothing without"
	case c.Steer == "cordon":
		f.Status, f.How, f.Found = OK, Declared, "by cordoning nodes (--steer=cordon): cases that need pods on both systems are not tested"
	case c.Steering.Err != nil:
		c.unknown(f, c.Steering.Err)
		return
	case c.Steering.Value == "":
		f.Status = Failing
		f.Found = "MutatingAdmissionPolicy is not served, so pods cannot be steered to Windows"
		f.Fix = "use Kubernetes 1.36 or newer, or, from 1.34 on, start the API server with --feature-gates=MutatingAdmissionPolicy=true --runtime-config=admissionregistration.k8s.io/v1beta1=true; or steer by cordoning nodes, which proves less: run --steer=cordon"
	default:
		f.Status, f.Found = OK, c.Steering.Value+" is served"
	}
	c.add(f)
}

func (c *checker) kubectl() {
	f := Finding{ID: "kubectl", Group: groupRun, Status: OK, How: "this machine", Found: "there is one: " + c.Kubectl, Concerns: []string{"kubectl"}}
	switch {
	case c.without("kubectl"):
		f.Status, f.How, f.Found = Failing, Declared, "declared absent (--without kubectl)"
		f.Fix = "put a kubectl on the path and leave --without kubectl out"
	case c.Kubectl == "":
		f.Status, f.Found = Failing, "none on the path; tests run commands in containers with it"
		f.Fix = "put a kubectl on the path, or name one with --kubectl"
	}
	c.add(f)
}

func (c *checker) provider() {
	f := Finding{ID: "provider", Group: groupRun, Status: OK, How: "--provider", Found: fmt.Sprintf("%s, the e2e framework's", c.Provider)}
	var skipped []string
	for i := range c.Standard {
		for _, skip := range c.Standard[i].SkipProviders {
			if skip.Provider == c.Provider && c.Standard[i].Gates() {
				skipped = append(skipped, c.Standard[i].ID)
			}
		}
	}
	switch {
	case len(skipped) > 0:
		f.Status = Failing
		f.Found += "; with it these cannot be tested: " + strings.Join(skipped, ", ")
		f.Fix = "use --provider skeleton"
	case c.Provider == "local":
		f.Status = Warning
		f.Found += "; with it, tests that use SSH no longer skip themselves"
		f.Fix = "use --provider skeleton, unless nodes can be reached with SSH"
	}
	c.add(f)
}

func (c *checker) leftovers() {
	cordoned := Read[[]string]{Err: c.Nodes.Err, Value: c.names(func(n *Node) bool { return n.CordonedByRun })}
	for _, l := range []struct {
		id, how, fix string
		names        Read[[]string]
	}{
		{"leftover-namespaces", "namespaces labelled " + cluster.SuiteLabel, "wait when another run of e2e.test goes on; otherwise: kubectl delete namespace -l " + cluster.SuiteLabel, c.Namespaces},
		{"leftover-steering", "admission policies labelled " + steeringLabel, "wait when another run goes on; what a killed one left, the next run removes", c.Policies},
		{"leftover-cordon", "nodes annotated " + cluster.CordonAnnotation, "wait when another run goes on; what a killed one left, the next run restores", cordoned},
		{"leftover-probes", "namespaces labelled " + probe.Label, "wait when another preflight goes on; what a killed one left, the next that probes removes, or: kubectl delete namespace -l " + probe.Label, c.ProbeNamespaces},
	} {
		f := Finding{ID: l.id, Group: groupRun, Status: OK, How: l.how, Found: "none"}
		switch {
		case l.names.Err != nil:
			c.unknown(f, l.names.Err)
			continue
		case len(l.names.Value) > 0:
			f.Status, f.Fix = Warning, l.fix
			f.Found = fmt.Sprintf("%d: %s", len(l.names.Value), shorten(l.names.Value, 5))
		}
		c.add(f)
	}
}

// declarations adds findings for what was declared absent and has no finding of
// its own.
func (c *checker) declarations() {
	for _, name := range c.Declared.Without {
		if slices.ContainsFunc(c.findings, func(f Finding) bool { return f.How == Declared && slices.Contains(f.Concerns, name) }) {
			continue
		}
		f := Finding{ID: "without-" + name, Group: groupFeatures, Status: OK, How: Declared, Concerns: []string{name}}
		f.Found = fmt.Sprintf("declared absent (--without %s)", name)
		capability, _ := specs.LookupCapability(name)
		if !capability.Feature && len(waiting(c.Standard, f.Concerns)) > 0 {
			f.Status = Failing
			f.Found += "; what the standard asks for and needs it is not tested"
			f.Fix = fmt.Sprintf("see to it that there is: %s; and leave --without %s out", capability.Means, name)
		}
		c.add(f)
	}
}

// shorten lists the first few of names.
func shorten(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, … and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
