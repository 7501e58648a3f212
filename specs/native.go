package specs

import (
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

var (
	idPattern    = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	labelPattern = regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+)*$`)
	minorPattern = regexp.MustCompile(`^\d{1,3}\.\d{1,3}$`)
)

// The labels that every case has by what it is: one of these two.
const (
	// LabelRequired marks what every cluster must show.
	LabelRequired = "required"
	// LabelOptional marks what is asked of clusters with a feature only, or of
	// none.
	LabelOptional = "optional"
)

// LabelAPIOnly marks cases whose tests need no container to run, so that they
// mean something on simulated nodes, too.
const LabelAPIOnly = "api-only"

// nativeFile reads a file of this project's format.
func (r *reader) nativeFile(root *yaml.Node, set *Set) {
	var category Category
	var references []string
	var cases *yaml.Node
	named := false
	r.mapping(root, "a spec file", []field{
		{"category", func(_, v *yaml.Node) { category, named = r.category(v), true }},
		{"references", func(_, v *yaml.Node) { references = r.references(v) }},
		{"cases", func(_, v *yaml.Node) { cases = v }},
	})
	if !named {
		r.problem(root.Line, "", "the file names no category")
	}
	n := 0
	r.sequence(cases, "cases", func(entry *yaml.Node) {
		n++
		if c, o, ok := r.nativeCase(entry); ok {
			c.Category = category
			c.References = slices.Concat(references, c.References)
			r.checkCase(&c, o.line)
			c.onTrial()
			c.Labels = append([]string{impliedLabel(&c)}, c.Labels...)
			set.add(c, o)
		}
	})
	if n == 0 {
		r.problem(cases.Line, "", "category %s is empty: give it a case or delete the file", category)
	}
}

func (r *reader) category(n *yaml.Node) Category {
	c, err := ParseCategory(r.text(n, "category"))
	if err != nil {
		r.problem(n.Line, "", "%v", err)
	}
	return c
}

// onTrial makes a trial of a case of this project's own tests that nobody has seen
// on real Windows nodes.
func (c *Case) onTrial() {
	own := func(s Selector) bool { return s.Suite == OpReadiness }
	if len(c.Seen) == 0 && slices.ContainsFunc(c.Tests, own) {
		c.Kind, c.ID = Trial, c.ID+trialSuffix
	}
}

func impliedLabel(c *Case) string {
	if c.Kind != Additional && c.Kind != Trial && (c.Category.Core() || c.Kind == Rule) {
		return LabelRequired
	}
	return LabelOptional
}

func (r *reader) nativeCase(n *yaml.Node) (Case, origin, bool) {
	c := Case{Kind: Requirement}
	o := origin{file: r.file, line: n.Line}
	// What goes wrong while the case is read is the case's problem.
	before := len(r.problems)
	ok := r.mapping(n, "a case", []field{
		{"id", func(_, v *yaml.Node) {
			c.ID = r.text(v, "id")
			if !idPattern.MatchString(c.ID) || len(c.ID) > 100 {
				r.problem(v.Line, "", "id %q must be words of lower case letters and digits, joined by hyphens, up to 100 characters", clip(c.ID))
			}
		}},
		{"requirement", func(_, v *yaml.Node) { c.Requirement = strings.TrimSpace(r.text(v, "requirement")) }},
		{"kind", func(_, v *yaml.Node) {
			c.Kind = Kind(r.oneOf(v, "kind", string(Requirement), string(Rule), string(Additional)))
		}},
		{"proof", func(_, v *yaml.Node) {
			c.Proof = Proof(r.oneOf(v, "proof", string(ProofFull), string(ProofPart), string(ProofNone)))
		}},
		{"missing", func(_, v *yaml.Node) { c.Missing = strings.TrimSpace(r.text(v, "missing")) }},
		{"check", func(_, v *yaml.Node) { c.Check = r.oneOf(v, "check", checks...) }},
		{"kubernetes", func(_, v *yaml.Node) { c.Kubernetes = r.versions(v) }},
		{"tests", func(_, v *yaml.Node) {
			r.sequence(v, "tests", func(entry *yaml.Node) {
				c.Tests = append(c.Tests, r.selector(entry))
				o.tests = append(o.tests, entry.Line)
			})
		}},
		{"needs", func(_, v *yaml.Node) { c.Needs = r.needs(v) }},
		{"conditions", func(_, v *yaml.Node) { c.Conditions = r.conditions(v) }},
		{"images", func(_, v *yaml.Node) { c.Images = r.images(v) }},
		{"phase", func(_, v *yaml.Node) {
			c.Phase = Phase(r.oneOf(v, "phase", string(Parallel), string(Serial), string(Disruptive)))
		}},
		{"duration", func(_, v *yaml.Node) { c.Duration = r.duration(v, "duration") }},
		{"timeout", func(_, v *yaml.Node) { c.Timeout = r.duration(v, "timeout") }},
		{"skipProviders", func(_, v *yaml.Node) { c.SkipProviders = r.providers(v) }},
		{"seen", func(_, v *yaml.Node) { c.Seen = r.seen(v) }},
		{"labels", func(_, v *yaml.Node) { c.Labels = r.labels(v) }},
		{"references", func(_, v *yaml.Node) { c.References = r.references(v) }},
	})
	r.checkPresent(n, &c)
	for i := range r.problems[before:] {
		r.problems[before+i].Case = c.ID
	}
	return c, o, ok
}

// checkPresent reports what every case must say and this one does not. What
// is there and wrong has been reported.
func (r *reader) checkPresent(n *yaml.Node, c *Case) {
	if n = r.resolve(n); n.Kind != yaml.MappingNode {
		return
	}
	said := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		said[n.Content[i].Value] = true
	}
	need := func(field, what string) {
		if !said[field] {
			r.problem(n.Line, "", "the case needs a %s: %s", field, what)
		}
	}
	need("id", "a name that is its own and stays")
	if c.Requirement == "" {
		said["requirement"] = false
	}
	need("requirement", "the sentence that it stands for")
	need("proof", "full, part or none")
	if c.Kind == Rule {
		need("check", oneOf(checks))
	} else if said["tests"] && c.Proof != ProofNone {
		need("phase", "parallel, serial or disruptive")
		need("duration", "how long its tests are expected to take, such as 3m")
	}
}

func (r *reader) versions(n *yaml.Node) (v VersionRange) {
	minor := func(what string, to *string) func(_, v *yaml.Node) {
		return func(_, v *yaml.Node) {
			*to = r.text(v, what)
			if !minorPattern.MatchString(*to) {
				r.problem(v.Line, "", "kubernetes.%s %q must be a minor version, such as \"1.35\"", what, clip(*to))
				*to = ""
			}
		}
	}
	r.mapping(n, "kubernetes", []field{{"from", minor("from", &v.From)}, {"to", minor("to", &v.To)}})
	if v.From != "" && v.To != "" {
		from, _ := ParseVersion(v.From)
		to, _ := ParseVersion(v.To)
		if to.Compare(from) < 0 {
			r.problem(n.Line, "", "kubernetes.to %s is below from %s", v.To, v.From)
		}
	}
	return v
}

func (r *reader) selector(n *yaml.Node) (s Selector) {
	focused, counted := false, false
	if !r.mapping(n, "an entry of tests", []field{
		{"suite", func(_, v *yaml.Node) { s.Suite = Suite(r.oneOf(v, "suite", string(Kubernetes), string(OpReadiness))) }},
		{"focus", func(_, v *yaml.Node) {
			s.Focus = r.focus(v)
			focused = s.Focus != ""
		}},
		{"skip", func(_, v *yaml.Node) { s.Skip = r.pattern(v, "skip") }},
		{"expect", func(_, v *yaml.Node) {
			counted = true
			s.Expect = r.number(v, "expect")
		}},
	}) {
		return s
	}
	if !focused {
		r.problem(n.Line, "", "an entry of tests needs a focus: without one, every test is selected")
	}
	if !counted {
		r.problem(n.Line, "", "an entry of tests needs expect: how many tests the focus matches")
	}
	return s
}

// focus reads a focus and refuses what ginkgo can never match.
func (r *reader) focus(n *yaml.Node) string {
	text := r.pattern(n, "focus")
	if strings.HasPrefix(text, `^\[`) {
		r.problem(n.Line, "", "focus %q never matches, because ginkgo puts %q before the name: begin with \\[ or with ^%s \\[", clip(text), SuiteName+" ", SuiteName)
	}
	return text
}

func (r *reader) needs(n *yaml.Node) (needs Needs) {
	names := func(what string, features bool, to *[]string) func(_, v *yaml.Node) {
		return func(_, v *yaml.Node) {
			for _, name := range r.texts(v, "needs."+what) {
				capability, known := LookupCapability(name)
				switch {
				case !known:
					r.problem(v.Line, "", "needs.%s names an unknown capability %q%s", what, clip(name), didYouMean(name, capabilityNames(features)))
				case features && !capability.Feature:
					r.problem(v.Line, "", "needs.condition names %s, which every cluster is asked for: move it to needs.means (conditions can be %s)", name, oneOf(capabilityNames(true)))
				case slices.Contains(*to, name):
					r.problem(v.Line, "", "needs.%s names %s twice", what, name)
				}
				*to = append(*to, name)
			}
		}
	}
	r.mapping(n, "needs", []field{
		{"condition", names("condition", true, &needs.Condition)},
		{"means", names("means", false, &needs.Means)},
	})
	return needs
}

func (r *reader) conditions(n *yaml.Node) (c Conditions) {
	r.mapping(n, "conditions", []field{
		{"steer", func(_, v *yaml.Node) { c.Steer = OS(r.oneOf(v, "steer", string(Windows), string(Linux))) }},
		{"steerPods", func(_, v *yaml.Node) { c.SteerPods = r.pattern(v, "steerPods") }},
		{"placement", func(_, v *yaml.Node) {
			r.sequence(v, "placement", func(entry *yaml.Node) { c.Placement = append(c.Placement, r.placement(entry)) })
		}},
		{"runtimeClass", func(_, v *yaml.Node) { c.RuntimeClass = r.text(v, "runtimeClass") }},
	})
	if c.SteerPods != "" && c.Steer == "" {
		r.problem(n.Line, "", "steerPods without steer: say where the pods go, windows or linux")
	}
	return c
}

func (r *reader) placement(n *yaml.Node) (p Placement) {
	if !r.mapping(n, "an entry of placement", []field{
		{"pods", func(_, v *yaml.Node) { p.Pods = r.pattern(v, "pods") }},
		{"os", func(_, v *yaml.Node) { p.OS = OS(r.oneOf(v, "os", string(Windows), string(Linux), string(AnyOS))) }},
		{"including", func(_, v *yaml.Node) {
			r.sequence(v, "including", func(entry *yaml.Node) {
				p.Including = append(p.Including, OS(r.oneOf(entry, "including", string(Windows), string(Linux))))
			})
		}},
		{"starts", func(_, v *yaml.Node) { p.NeverStarts = r.oneOf(v, "starts", "false", "true") == "false" }},
	}) {
		return p
	}
	switch {
	case p.Pods == "":
		r.problem(n.Line, "", "an entry of placement needs pods: a regular expression for their names")
	case p.OS == "":
		r.problem(n.Line, "", "an entry of placement needs os: windows, linux or any")
	case p.OS != AnyOS && len(p.Including) > 0:
		r.problem(n.Line, "", "including is for os any: os %s already says where every pod must be", p.OS)
	}
	return p
}

func (r *reader) images(n *yaml.Node) (images []ImageException) {
	r.sequence(n, "images", func(entry *yaml.Node) {
		var e ImageException
		if r.mapping(entry, "an entry of images", []field{
			{"image", func(_, v *yaml.Node) { e.Image = r.text(v, "image") }},
			{"why", func(_, v *yaml.Node) { e.Why = r.text(v, "why") }},
		}) && (e.Image == "" || e.Why == "" || strings.ContainsAny(e.Image, "/:@")) {
			r.problem(entry.Line, "", "an image exception needs image, a name without registry and tag, and why: the standard wants a reason")
		}
		images = append(images, e)
	})
	return images
}

func (r *reader) providers(n *yaml.Node) (skips []ProviderSkip) {
	r.sequence(n, "skipProviders", func(entry *yaml.Node) {
		var p ProviderSkip
		if r.mapping(entry, "an entry of skipProviders", []field{
			{"provider", func(_, v *yaml.Node) { p.Provider = r.text(v, "provider") }},
			{"reason", func(_, v *yaml.Node) { p.Reason = r.text(v, "reason") }},
		}) && (p.Provider == "" || p.Reason == "") {
			r.problem(entry.Line, "", "an entry of skipProviders needs provider and reason")
		}
		skips = append(skips, p)
	})
	return skips
}

func (r *reader) labels(n *yaml.Node) []string {
	labels := r.texts(n, "labels")
	for _, l := range labels {
		switch {
		case l == LabelRequired || l == LabelOptional:
			r.problem(n.Line, "", "label %s comes from the category: leave it out", l)
		case !labelPattern.MatchString(l):
			r.problem(n.Line, "", "label %q must be lower case letters, digits, hyphens and dots", clip(l))
		}
	}
	return labels
}

func (r *reader) references(n *yaml.Node) []string {
	references := r.texts(n, "references")
	for _, ref := range references {
		if !strings.HasPrefix(ref, "https://") {
			r.problem(n.Line, "", "reference %q must be a link that begins with https://", clip(ref))
		}
	}
	return references
}

// seen reads the links that end a trial.
func (r *reader) seen(n *yaml.Node) []string {
	links := r.references(n)
	if len(links) != 2 || links[0] == links[1] {
		r.problem(n.Line, "", "seen has two links: to a run on real Windows nodes in which the tests passed, and to one in which they failed")
	}
	return links
}

// checkCase finds what does not go together in a case.
func (r *reader) checkCase(c *Case, line int) {
	bad := func(format string, args ...any) { r.problem(line, c.ID, format, args...) }
	if c.Proof == ProofPart && c.Missing == "" {
		bad("proof part needs missing: what the tests do not show")
	}
	if c.Proof == ProofNone && c.Missing == "" {
		bad("proof none needs missing: what a test would do")
	}
	if c.Proof == ProofFull && c.Missing != "" {
		bad("proof full has a missing: make it part, or delete missing")
	}
	if c.Kind == Rule {
		r.checkRule(c, bad)
		return
	}
	switch {
	case c.Category == ClusterRules:
		bad("category %s has rules only: say kind: rule", ClusterRules)
	case c.Check != "":
		bad("check is for rules")
	}
	switch {
	case c.Proof == ProofNone && len(c.Tests) > 0:
		bad("proof none has tests: say how much they prove, full or part")
	case (c.Proof == ProofFull || c.Proof == ProofPart) && len(c.Tests) == 0:
		bad("proof %s needs tests", c.Proof)
	}
	own := slices.ContainsFunc(c.Tests, func(s Selector) bool { return s.Suite == OpReadiness })
	switch {
	case own && !compiledFor(c.Kubernetes.From):
		bad("tests of suite %s need kubernetes.from: it is compiled for Kubernetes %s and newer", OpReadiness, oldestSuite)
	case own && c.Conditions.Steer != "":
		bad("tests of suite %s say themselves where their pods go: leave steer out", OpReadiness)
	case !own && len(c.Seen) > 0:
		bad("seen is for tests of suite %s", OpReadiness)
	}
	if c.Category.Core() && c.Kind == Requirement && c.Proof == ProofFull && len(c.Images) > 0 {
		bad("Core allows agnhost and pause only, so image exceptions and proof full do not go together")
	}
}

// compiledFor reports whether suite op-readiness is compiled for a Kubernetes
// version and all newer ones.
func compiledFor(from string) bool {
	v, err := ParseVersion(from)
	oldest, _ := ParseVersion(oldestSuite)
	return err == nil && v.Compare(oldest) >= 0
}

func (r *reader) checkRule(c *Case, bad func(string, ...any)) {
	if c.Category != ClusterRules && c.Category != "" {
		bad("rules belong to category %s", ClusterRules)
	}
	if len(c.Tests) > 0 {
		bad("a rule has no tests: its check decides")
	}
}
