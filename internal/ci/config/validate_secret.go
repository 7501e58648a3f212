package config

import (
	"regexp"
	"strings"
)

// gitHubName is what GitHub calls secrets; it ends up in an expression.
var gitHubName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// gitHubSecret checks the name of a secret of GitHub's, in which placeholders stand
// for capitals and underscores.
func (v *validator) gitHubSecret(field, name string) {
	v.secretName(field, name)
	plain := strings.ReplaceAll(placeholders.ReplaceAllString(name, "X"), "-", "_")
	switch {
	case name == "":
	case !gitHubName.MatchString(plain):
		v.add(field, "%q is not a secret name: GitHub takes letters, digits and underscores, and no digit first", name)
	case strings.HasPrefix(strings.ToUpper(plain), "GITHUB_"):
		v.add(field, "%q begins with GITHUB_, which GitHub keeps for itself: use another name", name)
	}
}
