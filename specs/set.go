package specs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Set is a standard: the cases of its spec files, with all their variants.
type Set struct {
	Cases []Case
	// origins go with Cases; a set that was put together in memory has none.
	origins []origin
	// empty are the categories that a file names without giving a case.
	empty []emptyCategory
}

// origin is where a case was read.
type origin struct {
	file string
	// line is the case's, tests are its selectors'.
	line    int
	tests   []int
	foreign bool
}

type emptyCategory struct {
	category Category
	file     string
	line     int
}

// Source returns the file and the line of a case, "" and 0 if it has none.
func (s *Set) Source(c *Case) (file string, line int) {
	o := s.origin(c)
	return o.file, o.line
}

func (s *Set) origin(c *Case) origin {
	for i := range s.origins {
		if s.Cases[i].ID == c.ID && s.Cases[i].Kubernetes == c.Kubernetes {
			return s.origins[i]
		}
	}
	return origin{}
}

// Categories returns the categories in the standard's order, the rules first.
func Categories() []Category {
	return []Category{
		ClusterRules, CoreNetwork, CoreStorage, CoreScheduling, CoreConcurrent,
		ExtendHostProcess, ExtendActiveDirectory, ExtendNetworkPolicy, ExtendServiceProxy, ExtendWorker,
	}
}

// olderCategory is how the reference implementation calls Extend.ServiceProxy.
const olderCategory = "Extend.Network"

// ParseCategory returns the category of that name, in any case. Extend.Network
// is taken for Extend.ServiceProxy.
func ParseCategory(name string) (Category, error) {
	if strings.EqualFold(name, olderCategory) {
		return ExtendServiceProxy, nil
	}
	var names []string
	for _, c := range Categories() {
		if strings.EqualFold(name, string(c)) {
			return c, nil
		}
		names = append(names, string(c))
	}
	return "", fmt.Errorf("unknown category %q%s", name, didYouMean(name, names))
}

// Core reports whether every cluster must pass the category.
func (c Category) Core() bool { return strings.HasPrefix(string(c), "Core.") }

// Gates reports whether requirements of the category can keep a cluster from being
// ready, as all but those of Extend.Worker do.
func (c Category) Gates() bool { return c != ExtendWorker }

// For returns the standard as it stands for a cluster's Kubernetes version:
// one case for each id, categories in the standard's order. Of several
// variants the one with the highest Kubernetes.From not above the version
// counts, as the KEP has it. An id that has no variant for the version is
// there without proof, so that no requirement disappears.
func (s *Set) For(version string) ([]Case, error) {
	v, err := ParseVersion(version)
	if err != nil {
		return nil, err
	}
	variants := map[string][]Case{}
	var ids []string
	for _, c := range s.inOrder() {
		if variants[c.ID] == nil {
			ids = append(ids, c.ID)
		}
		variants[c.ID] = append(variants[c.ID], c)
	}
	cases := make([]Case, 0, len(ids))
	for _, id := range ids {
		cases = append(cases, choose(variants[id], v))
	}
	return cases, nil
}

func (s *Set) inOrder() []Case {
	cases := slices.Clone(s.Cases)
	rank := map[Category]int{}
	for i, c := range Categories() {
		rank[c] = i
	}
	slices.SortStableFunc(cases, func(a, b Case) int { return cmp.Compare(rank[a.Category], rank[b.Category]) })
	return cases
}

func choose(variants []Case, v Version) Case {
	best := -1
	for i, c := range variants {
		if c.Kubernetes.Contains(v) && (best < 0 || compareFrom(c, variants[best]) > 0) {
			best = i
		}
	}
	if best >= 0 {
		return variants[best]
	}
	// The first variant lends its sentence.
	slices.SortStableFunc(variants, compareFrom)
	c := variants[0]
	ranges := make([]string, len(variants))
	for i := range variants {
		ranges[i] = variants[i].Kubernetes.String()
	}
	return Case{
		ID: c.ID, Requirement: c.Requirement, Category: c.Category, Kind: c.Kind, Check: c.Check,
		Proof:      ProofNone,
		Missing:    fmt.Sprintf("No test is known for Kubernetes %s; known are those for %s.", v.MinorString(), strings.Join(ranges, ", ")),
		Needs:      Needs{Condition: c.Needs.Condition},
		Labels:     c.Labels,
		References: c.References,
	}
}

// compareFrom orders variants of a case; an open start is the lowest.
func compareFrom(a, b Case) int {
	x, errX := ParseVersion(a.Kubernetes.From)
	y, errY := ParseVersion(b.Kubernetes.From)
	switch {
	case errX != nil && errY != nil:
		return 0
	case errX != nil:
		return -1
	case errY != nil:
		return 1
	}
	return x.Compare(y)
}
