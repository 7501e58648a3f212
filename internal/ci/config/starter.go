package config

import (
	_ "embed"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed starter.yaml
var starter string

// gitHubRemote finds a GitHub repository in a git configuration.
var gitHubRemote = regexp.MustCompile(`(?m)^\s*url\s*=\s*\S*github\.com[:/]([A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+?)(?:\.git)?/?\s*$`)

// Starter is a commented file to start from, for the repository that
// dir is in, as far as its git configuration names one on GitHub. It
// is valid as it stands.
func Starter(dir string) []byte {
	repository := "my-org/my-repository"
	if m := gitHubRemote.FindSubmatch(gitConfig(dir)); m != nil {
		repository = string(m[1])
	}
	return []byte(strings.Replace(starter, "REPOSITORY", repository, 1))
}

// gitConfig is the git configuration of the repository that dir is in.
func gitConfig(dir string) []byte {
	dir, err := filepath.Abs(dir)
	for err == nil {
		if data, err := os.ReadFile(filepath.Join(dir, ".git", "config")); err == nil {
			return data
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return nil
}
