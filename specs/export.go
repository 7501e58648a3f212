package specs

import (
	"bytes"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// exported is one case in the file that [Export] writes.
type exported struct {
	Category    Category `yaml:"category"`
	Requirement string   `yaml:"requirement"`
	Kind        Kind     `yaml:"kind"`
	Proof       Proof    `yaml:"proof"`
	Missing     string   `yaml:"missing,omitempty"`
	// Focus and Skip are nil where there are no tests, because an empty focus
	// selects every test.
	Focus *string `yaml:"focus,omitempty"`
	Skip  *string `yaml:"skip,omitempty"`
	Tests int     `yaml:"tests"`
	Phase Phase   `yaml:"phase,omitempty"`
	// The rest is what ginkgo cannot be told.
	Conditions    Conditions       `yaml:"conditions,omitempty"`
	Needs         Needs            `yaml:"needs,omitempty"`
	Images        []ImageException `yaml:"images,omitempty"`
	SkipProviders []ProviderSkip   `yaml:"skipProviders,omitempty"`
}

const exportHead = `# Windows Operational Readiness (KEP-2578) for Kubernetes %[1]s.
# To run one case by hand, with the e2e.test of that version:
#
#   focus=$(yq -e '.cases["core-network-pod-ip-win-to-linux"].focus' FILE) &&
#   skip=$(yq '.cases["core-network-pod-ip-win-to-linux"].skip' FILE) &&
#   e2e.test --provider=skeleton --kubeconfig="$KUBECONFIG" --node-os-distro=windows \
#     --ginkgo.focus="$focus" --ginkgo.skip="$skip"
#
# A case without a focus has no test. Where conditions stand beside the focus, a
# pass counts only if they held: steering takes more than e2e.test.
`

// Export writes the standard for one Kubernetes version as a YAML file to be
// downloaded: a mapping of case ids, each with one focus and one skip to give
// to e2e.test, and "tests", how many they select.
func Export(set *Set, version string) ([]byte, error) {
	cases, err := set.For(version)
	if err != nil {
		return nil, err
	}
	v, err := ParseVersion(version)
	if err != nil {
		return nil, err
	}
	byID := &yaml.Node{Kind: yaml.MappingNode}
	for i := range cases {
		c := &cases[i]
		if c.Kind == Rule {
			continue
		}
		e := exported{
			Category: c.Category, Requirement: c.Requirement, Kind: c.Kind, Proof: c.Proof, Missing: c.Missing,
			Phase: c.Phase, Conditions: c.Conditions, Needs: c.Needs, Images: c.Images, SkipProviders: c.SkipProviders,
		}
		if len(c.Tests) > 0 {
			focus, skip, tests, err := joinSelectors(c.Tests)
			if err != nil {
				return nil, fmt.Errorf("exporting %s: %w", c.ID, err)
			}
			e.Focus, e.Skip, e.Tests = &focus, &skip, tests
		}
		var value yaml.Node
		if err := value.Encode(e); err != nil {
			return nil, fmt.Errorf("exporting %s: %w", c.ID, err)
		}
		byID.Content = append(byID.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: c.ID}, &value)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, exportHead, v)
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(struct {
		KubernetesVersion string     `yaml:"kubernetesVersion"`
		Cases             *yaml.Node `yaml:"cases"`
	}{v.String(), byID}); err != nil {
		return nil, err
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// joinSelectors makes one focus and one skip of several selectors. A skip of
// one would also take from what another selects, so it must be the same in all.
func joinSelectors(selectors []Selector) (focus, skip string, tests int, err error) {
	var parts []string
	for i, s := range selectors {
		if i > 0 && s.Skip != skip {
			return "", "", 0, fmt.Errorf("its tests have different skips, which cannot be joined into one: make a case of each")
		}
		skip = s.Skip
		tests += s.Expect
		parts = append(parts, s.Focus)
	}
	return strings.Join(parts, "|"), skip, tests, nil
}
