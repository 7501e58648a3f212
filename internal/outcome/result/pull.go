package result

import (
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Pull is what came of an image that nodes of a system were to pull before the
// tests. No verdict rests on it.
type Pull struct {
	Image string   `json:"image"`
	OS    specs.OS `json:"os"`
	// WindowsBuild is the nodes', such as "10.0.20348"; "" for Linux, and where
	// nodes do not say.
	WindowsBuild string `json:"windowsBuild,omitempty"`
	// Nodes is how many were to pull it.
	Nodes int `json:"nodes"`
	// Seconds is how long it took until all had it, or were given up.
	Seconds float64 `json:"seconds,omitempty"`
	// Problem says why nodes do not have the image; "" where all do.
	Problem string `json:"problem,omitempty"`
	// Skipped says why nobody was asked to pull it.
	Skipped string `json:"skipped,omitempty"`
}

// Pulls are the images that were to be pulled before the tests, of all shards: of an
// image on a system, the one that went worst.
func (r *Run) Pulls() []Pull {
	var all []Pull
	for _, m := range r.Manifests() {
		for _, pull := range m.Pulls {
			at := slices.IndexFunc(all, func(p Pull) bool {
				return p.Image == pull.Image && p.OS == pull.OS && p.WindowsBuild == pull.WindowsBuild
			})
			switch {
			case at < 0:
				all = append(all, pull)
			case all[at].Problem == "" && (pull.Problem != "" || pull.Seconds > all[at].Seconds):
				all[at] = pull
			}
		}
	}
	return all
}

// System names the system for people.
func (p *Pull) System() string {
	if p.OS == specs.Linux {
		return "Linux"
	}
	return strings.TrimSpace("Windows " + p.WindowsBuild)
}
