package specs

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// What files of other formats leave open.
const (
	foreignMissing  = "The spec file does not say how much of the requirement its tests show, nor where their pods must run."
	foreignReason   = "the spec file skips it on this provider"
	foreignPhase    = Serial // nothing says that the tests bear company
	foreignDuration = 5 * time.Minute
	foreignTimeout  = 30 * time.Minute
)

// foreignCase gathers a case of another format.
type foreignCase struct {
	line        int
	category    Category
	description string
	focus, skip []string
	versions    []string
	providers   []string
}

// referenceFile reads the format of the reference implementation, and that of
// the talk, where the versions are the file's and the category is the case's.
func (r *reader) referenceFile(root *yaml.Node, set *Set) {
	var file foreignCase
	var cases *yaml.Node
	r.mapping(root, "a spec file of the reference implementation", []field{
		{"category", func(_, v *yaml.Node) { file.category = r.category(v) }},
		{"kubernetesVersions", func(_, v *yaml.Node) { file.versions = r.texts(v, "kubernetesVersions") }},
		{"testCases", func(_, v *yaml.Node) { cases = v }},
	})
	n := 0
	r.sequence(cases, "testCases", func(entry *yaml.Node) {
		n++
		c := foreignCase{line: entry.Line, category: file.category, versions: file.versions}
		if r.mapping(entry, "a test case", []field{
			{"category", func(_, v *yaml.Node) { c.category = r.category(v) }},
			{"description", func(_, v *yaml.Node) { c.description = r.text(v, "description") }},
			{"focus", func(_, v *yaml.Node) { c.focus = r.texts(v, "focus") }},
			{"skip", func(_, v *yaml.Node) { c.skip = r.texts(v, "skip") }},
			{"kubernetesVersions", func(_, v *yaml.Node) { c.versions = r.texts(v, "kubernetesVersions") }},
			{"skipProviders", func(_, v *yaml.Node) { c.providers = r.texts(v, "skipProviders") }},
		}) {
			if c.category == "" {
				r.problem(c.line, "", "neither the test case nor the file names a category")
				return
			}
			r.addForeign(c, set)
		}
	})
	if n == 0 {
		r.warn(cases.Line, "category %s is empty", file.category)
		set.empty = append(set.empty, emptyCategory{file.category, r.file, cases.Line})
	}
}

// kepFile reads the format that the KEP proposes. It has no categories: the
// file's name gives one, or else the requirement that the case resembles.
func (r *reader) kepFile(root *yaml.Node, set *Set) {
	var file foreignCase
	var tests *yaml.Node
	r.mapping(root, "a spec file of the KEP", []field{
		{"kubernetesVersions", func(_, v *yaml.Node) { file.versions = r.texts(v, "kubernetesVersions") }},
		{"tests", func(_, v *yaml.Node) { tests = v }},
	})
	byName := categoryOfFile(r.file)
	n := 0
	r.sequence(tests, "tests", func(entry *yaml.Node) {
		n++
		c := foreignCase{line: entry.Line, category: byName, versions: file.versions}
		// What the KEP only takes down is not used, whatever it is.
		ignore := func(_, _ *yaml.Node) {}
		if !r.mapping(entry, "a test", []field{
			{"ginkgoTag", func(_, v *yaml.Node) { c.focus = r.texts(v, "ginkgoTag") }},
			{"ginkgoSkip", func(_, v *yaml.Node) { c.skip = r.texts(v, "ginkgoSkip") }},
			{"operationalReadinessDescription", func(_, v *yaml.Node) {
				c.description = r.text(v, "operationalReadinessDescription")
			}},
			{"kubernetesVersion", func(_, v *yaml.Node) { c.versions = r.texts(v, "kubernetesVersion") }},
			{"windowsImage", ignore},
			{"linuxImage", func(_, v *yaml.Node) {
				if r.text(v, "linuxImage") == "bool" {
					r.warn(v.Line, "linuxImage: bool is the KEP's placeholder: leave it out, it is not used")
				}
			}},
			{"hasLinuxPods", ignore},
			{"hasWindowsPods", ignore},
			{"hasWindowsPodssPods", func(k, _ *yaml.Node) {
				r.warn(k.Line, "hasWindowsPodssPods is a slip of the KEP: write hasWindowsPods")
			}},
		}) {
			return
		}
		if c.category == "" {
			c.category = categoryOfSentence(c.description)
			if c.category == "" {
				r.problem(c.line, "", "the KEP's format names no category, and the test resembles no requirement: name the file after a category, such as core-network.yaml")
				return
			}
			r.warn(c.line, "taken for category %s, by the requirement that the test resembles: name the file after its category to be sure", c.category)
		}
		r.addForeign(c, set)
	})
	if n == 0 {
		r.problem(tests.Line, "", "the file has no tests")
	}
}

func (r *reader) addForeign(c foreignCase, set *Set) {
	c.description = strings.TrimSpace(c.description)
	if c.description == "" {
		r.problem(c.line, "", "the test case needs a description: its id is made of it")
		return
	}
	s := Selector{Focus: r.join(c.line, "focus", c.focus), Skip: r.join(c.line, "skip", c.skip)}
	if s.Focus == "" {
		r.problem(c.line, "", "the test case needs a focus: without one, every test is selected")
		return
	}
	result := Case{
		ID:          foreignID(c.category, c.description),
		Requirement: c.description,
		Category:    c.category,
		Kind:        Requirement,
		Proof:       ProofPart,
		Missing:     foreignMissing,
		Kubernetes:  r.lowest(c.line, c.versions),
		Tests:       []Selector{s},
		Phase:       foreignPhase,
		Duration:    foreignDuration,
		Timeout:     foreignTimeout,
	}
	for _, p := range c.providers {
		result.SkipProviders = append(result.SkipProviders, ProviderSkip{Provider: p, Reason: foreignReason})
	}
	result.Labels = []string{impliedLabel(&result)}
	set.add(result, origin{file: r.file, line: c.line, tests: []int{c.line}, foreign: true})
}

// join makes one expression of several, as ginkgo would. Empty entries are
// left out: as a branch, one matches everything.
func (r *reader) join(line int, what string, entries []string) string {
	var kept []string
	for _, e := range entries {
		if e != "" {
			kept = append(kept, e)
		}
	}
	if len(kept) > 0 && len(kept) < len(entries) {
		r.warn(line, "%s has an empty entry beside others, which would match every test: it is left out", what)
	}
	for _, e := range kept {
		if _, err := regexp.Compile(e); err != nil {
			r.problem(line, "", "%s %q is not a regular expression: %s", what, clip(e), strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			return "-"
		}
	}
	return strings.Join(kept, "|")
}

// lowest is the range that the KEP gives a list of versions: from the lowest
// on, until there is a variant for a higher one.
func (r *reader) lowest(line int, versions []string) VersionRange {
	var low *Version
	for _, text := range versions {
		v, err := ParseVersion(text)
		if err != nil {
			r.problem(line, "", "%v", err)
			continue
		}
		if low == nil || v.Compare(*low) < 0 {
			low = &v
		}
	}
	if low == nil {
		return VersionRange{}
	}
	return VersionRange{From: low.MinorString()}
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// foreignID makes an id of category and description that stays the same
// wherever the case stands in its file.
func foreignID(category Category, description string) string {
	const longest = 72
	slug := func(text string) string {
		return strings.Trim(notSlug.ReplaceAllString(strings.ToLower(text), "-"), "-")
	}
	words := slug(strings.TrimPrefix(description, "Ability to "))
	id := slug(string(category)) + "-" + words
	if words != "" && len(id) <= longest {
		return id
	}
	if len(id) > longest {
		id = id[:strings.LastIndexByte(id[:longest], '-')]
	}
	sum := sha256.Sum256([]byte(description))
	return strings.Trim(id, "-") + "-" + hex.EncodeToString(sum[:4])
}

// categoryOfFile reads a category from a file's or its folder's name.
func categoryOfFile(file string) Category {
	squeeze := func(s string) string { return notSlug.ReplaceAllString(strings.ToLower(s), "") }
	base := squeeze(strings.TrimSuffix(path.Base(file), path.Ext(file)))
	folder := squeeze(path.Base(path.Dir(file)))
	for _, c := range Categories() {
		if name := squeeze(string(c)); name == base || name == folder {
			return c
		}
	}
	return ""
}

// categoryOfSentence finds the requirement of the standard that a sentence is
// most like, and returns its category; "" where none is like it.
func categoryOfSentence(sentence string) Category {
	standard, err := Embedded()
	if err != nil {
		return ""
	}
	var best Category
	alike := 0.6
	for _, c := range standard.Cases {
		if s := similarity(sentence, c.Requirement); c.Kind == Requirement && s > alike {
			best, alike = c.Category, s
		}
	}
	return best
}
