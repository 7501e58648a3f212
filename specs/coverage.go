package specs

import (
	"fmt"
	"slices"
	"strings"
)

// VersionCoverage counts how much of the standard can be proven on one
// Kubernetes version.
type VersionCoverage struct {
	// Kubernetes is the version, as asked for.
	Kubernetes string `json:"kubernetes"`
	// Checked says that the tests of exactly this version are known, so that
	// lint holds the cases against them.
	Checked    bool       `json:"checked"`
	Categories []Coverage `json:"categories"`
	Total      Coverage   `json:"total"`
}

// Coverage counts requirements by how much the tests of a version can prove.
// Rules and additional tests do not count.
type Coverage struct {
	Category Category `json:"category,omitempty"`
	// Full, Part and None add up to Requirements.
	Full         int `json:"full"`
	Part         int `json:"part"`
	None         int `json:"none"`
	Requirements int `json:"requirements"`
	// Trial is for how many of them a test of suite op-readiness is on trial, which
	// counts as nothing yet.
	Trial int `json:"trial"`
}

func (c *Coverage) add(p Proof) {
	c.Requirements++
	switch p {
	case ProofFull:
		c.Full++
	case ProofPart:
		c.Part++
	default:
		c.None++
	}
}

// Minors returns the minor versions against whose tests the standard was
// checked, oldest first, such as "1.36".
func Minors() []string {
	var minors []string
	for _, known := range Catalogues() {
		if v, err := ParseVersion(known); err == nil {
			minors = append(minors, v.MinorString())
		}
	}
	return slices.Compact(minors)
}

// CheckVersion says how a Kubernetes version stands to those of [Minors]: one
// that is newer than all of them gets a note, and another one that is not among
// them is an error.
func CheckVersion(version string) (note string, err error) {
	v, err := ParseVersion(version)
	if err != nil {
		return "", err
	}
	minors := Minors()
	if slices.Contains(minors, v.MinorString()) {
		return "", nil
	}
	unchecked := "no case was checked against Kubernetes " + v.MinorString()
	newest, err := ParseVersion(minors[len(minors)-1])
	if err == nil && v.compareMinor(newest) > 0 {
		return fmt.Sprintf("%s: the newest is %s", unchecked, newest), nil
	}
	return "", fmt.Errorf("%s: test one of %s", unchecked, strings.Join(minors, ", "))
}

// Cover counts what of the set a Kubernetes version can prove.
func Cover(set *Set, version string) (*VersionCoverage, error) {
	cases, err := set.For(version)
	if err != nil {
		return nil, err
	}
	v, err := ParseVersion(version)
	if err != nil {
		return nil, err
	}
	coverage := &VersionCoverage{Kubernetes: version, Checked: slices.Contains(Catalogues(), "v"+v.String())}
	asked := map[string]bool{}
	for i := range cases {
		asked[cases[i].ID] = asked[cases[i].ID] || cases[i].Kind == Requirement
	}
	for i := range cases {
		c := &cases[i]
		if !asked[c.Proves()] || c.Kind == Trial && c.Proof == ProofNone {
			continue
		}
		n := len(coverage.Categories)
		if n == 0 || coverage.Categories[n-1].Category != c.Category {
			coverage.Categories = append(coverage.Categories, Coverage{Category: c.Category})
			n++
		}
		if c.Kind == Trial {
			coverage.Categories[n-1].Trial++
			coverage.Total.Trial++
			continue
		}
		coverage.Categories[n-1].add(c.Proof)
		coverage.Total.add(c.Proof)
	}
	return coverage, nil
}
