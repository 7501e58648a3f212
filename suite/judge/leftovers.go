package judge

import (
	"fmt"
	"regexp"
	"slices"
)

// ReadRules reads, from the log of script firewall, of which tests' namespaces there are
// firewall rules on a node: each as often as it has rules.
func ReadRules(log string) ([]string, error) {
	var said struct {
		Rules []string `json:"rules"`
	}
	if err := answer(log, &said); err != nil {
		return nil, fmt.Errorf("script firewall: %w", err)
	}
	return said.Rules, nil
}

// namespaceOfTest is what the framework calls the namespace of a test: its base name and
// a number.
var namespaceOfTest = regexp.MustCompile(`^[a-z][a-z-]{0,50}-[0-9]{1,10}$`)

// LeftBehind returns, each once, those of names that a test's namespace has, and no live
// one. Any other name is somebody else's.
func LeftBehind(names []string, live map[string]bool) []string {
	var left []string
	for _, name := range names {
		if namespaceOfTest.MatchString(name) && !live[name] {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return slices.Compact(left)
}
