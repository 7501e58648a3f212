package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// globsToRegexp makes one regular expression of globs, for Prow's
// run_if_changed, which holds it against the path of each changed file,
// relative to the repository. * and ? stay within a folder, ** does not, and
// {a,b} is either.
func globsToRegexp(globs []string) (string, error) {
	var all []string
	for _, g := range globs {
		re, err := globToRegexp(g)
		if err != nil {
			return "", fmt.Errorf("glob %q %w", g, err)
		}
		all = append(all, re)
	}
	switch len(all) {
	case 0:
		return "", nil
	case 1:
		return "^" + all[0] + "$", nil
	}
	return "^(" + strings.Join(all, "|") + ")$", nil
}

var errNoBrace = errors.New("has { and } that do not pair: write {a,b}")

func globToRegexp(glob string) (string, error) {
	if err := matchesNothing(glob); err != nil {
		return "", err
	}
	var b strings.Builder
	braces := 0
	for i := 0; i < len(glob); i++ {
		rest := glob[i:]
		switch c := glob[i]; {
		case strings.HasPrefix(rest, "**/") && (i == 0 || glob[i-1] == '/'):
			b.WriteString("(.*/)?")
			i += 2
		case strings.HasPrefix(rest, "**"):
			b.WriteString(".*")
			i++
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '{':
			braces++
			b.WriteByte('(')
		case c == '}':
			if braces--; braces < 0 {
				return "", errNoBrace
			}
			b.WriteByte(')')
		case c == ',' && braces > 0:
			b.WriteByte('|')
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	if braces != 0 {
		return "", errNoBrace
	}
	return b.String(), nil
}

// matchesNothing says why no path of a file in a repository can match.
func matchesNothing(glob string) error {
	switch {
	case strings.TrimSpace(glob) == "":
		return errors.New("is empty and matches no file: name one, or ** for all")
	case strings.TrimSpace(glob) != glob:
		return errors.New("begins or ends with a space and matches no file: remove it")
	case strings.Trim(glob, "{},") == "":
		return errors.New("has nothing between its braces and matches no file: write {a,b}")
	case strings.HasPrefix(glob, "!"):
		return errors.New("begins with ! and matches no file: name what shall match")
	case strings.HasPrefix(glob, "/"):
		return fmt.Errorf("begins with / and matches no file, for paths are relative to the repository: write %s", strings.TrimLeft(glob, "/"))
	case strings.HasSuffix(glob, "/"):
		return fmt.Errorf("is a folder and matches no file: write %s**", glob)
	case strings.Contains(glob, "//"):
		return errors.New("has // and matches no file: write /")
	case strings.ContainsAny(glob, `\[]`):
		return errors.New(`has one of \ [ ], which globs here do not know: use * ? ** and {a,b}`)
	}
	for _, part := range strings.Split(glob, "/") {
		if part == "." || part == ".." {
			return fmt.Errorf("has %s for a folder and matches no file: write the path from the repository's root", part)
		}
	}
	return nil
}
