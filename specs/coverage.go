package specs

import "slices"

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
	for i := range cases {
		c := &cases[i]
		if c.Kind != Requirement {
			continue
		}
		n := len(coverage.Categories)
		if n == 0 || coverage.Categories[n-1].Category != c.Category {
			coverage.Categories = append(coverage.Categories, Coverage{Category: c.Category})
			n++
		}
		coverage.Categories[n-1].add(c.Proof)
		coverage.Total.add(c.Proof)
	}
	return coverage, nil
}
