// Command gitleaks prints, as JSON, those of gitleaks' rules that
// internal/redact finds secrets with. The version is that of go.mod.
//
// Usage, from this folder:
//
//	go run . >../../internal/redact/gitleaks.json
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

const module = "github.com/zricethezav/gitleaks/v8"

// ownWays are rules that internal/redact has its own way for: fields, tokens and
// keys stand in logs otherwise than in the source code that gitleaks reads.
var ownWays = []string{"curl-auth-header", "curl-auth-user", "generic-api-key", "jwt", "jwt-base64", "private-key"}

// gitleaks wants a secret to end at a quote, a blank or a semicolon. In a log
// any character that is not a part of a word ends it, as in an address.
const (
	endInCode = "(?:[\\x60'\"\\s;]|\\\\[nr]|$)"
	endInLog  = `(?:[^\w=-]|$)`
)

// tooCommon is a keyword that is in half of all lines, and the tokens that it
// stands for are those of Vault before 1.10.
const tooCommon = "s."

type rule struct {
	ID          string   `toml:"id" json:"id"`
	Regex       string   `toml:"regex" json:"regex"`
	Path        string   `toml:"path" json:"-"`
	Entropy     float64  `toml:"entropy" json:"entropy,omitempty"`
	SecretGroup int      `toml:"secretGroup" json:"group,omitempty"`
	Keywords    []string `toml:"keywords" json:"keywords"`
}

type rules struct {
	Source  string   `toml:"-" json:"source"`
	License []string `toml:"-" json:"license"`
	Rules   []rule   `toml:"rules" json:"rules"`
}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gitleaks:", err)
		os.Exit(2)
	}
}

func run(w io.Writer) error {
	list := exec.Command("go", "mod", "download", "-json", module)
	list.Stderr = os.Stderr
	data, err := list.Output()
	if err != nil {
		return fmt.Errorf("getting %s: %w", module, err)
	}
	var from struct{ Dir, Version string }
	if err := json.Unmarshal(data, &from); err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(from.Dir, "LICENSE"))
	if err != nil {
		return err
	}
	r := rules{
		Source:  "DO NOT EDIT: made by scripts/gitleaks of config/gitleaks.toml in " + module + " " + from.Version,
		License: strings.Split(strings.TrimSpace(string(license)), "\n"),
	}
	if _, err := toml.DecodeFile(filepath.Join(from.Dir, "config", "gitleaks.toml"), &r); err != nil {
		return err
	}
	// A rule for files of some name says nothing of a log.
	r.Rules = slices.DeleteFunc(r.Rules, func(r rule) bool { return r.Path != "" || slices.Contains(ownWays, r.ID) })
	for i := range r.Rules {
		r.Rules[i].Regex = strings.ReplaceAll(r.Rules[i].Regex, endInCode, endInLog)
		r.Rules[i].Keywords = slices.DeleteFunc(r.Rules[i].Keywords, func(k string) bool { return k == tooCommon })
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
