package config

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Limits of job names. They become label values, which have 63 characters; a
// periodic that is forked for a release gets "-X-YY" appended.
const (
	maxJobName      = 63
	maxPeriodicName = 58
)

var (
	// jobName is what kubernetes/test-infra takes for the name of a job.
	jobName      = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	placeholders = regexp.MustCompile(`\{[^{}]*\}`)
	noName       = regexp.MustCompile(`[^a-z0-9]+`)
	normalised   = regexp.MustCompile(`[^a-z0-9]+`)
)

// slug is text in the form of names: lower case, and a dash for whatever is no
// letter or digit.
func slug(text string) string {
	return strings.Trim(noName.ReplaceAllString(strings.ToLower(text), "-"), "-")
}

// Slug is the category in the form of names, such as core-network: in names of
// jobs, and, as TestGrid's context, in names of JUnit files.
func Slug(c specs.Category) string { return strings.ReplaceAll(strings.ToLower(string(c)), ".", "-") }

// short cuts a name that is longer than limit, and ends it with six digits of
// its digest: always the same, and different for different names.
func short(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	digest := hex.EncodeToString(sum[:])[:6]
	return strings.TrimRight(name[:limit-1-len(digest)], "-") + "-" + digest
}

// Normalise is a name as TestGrid compares it: lower-case letters and digits
// only.
func Normalise(name string) string {
	return normalised.ReplaceAllString(strings.ToLower(name), "")
}

// PresubmitName is the name of the job that runs the plan for a pull request:
// the whole for "", or one category.
func (c *Config) PresubmitName(category specs.Category) string {
	name := "pull-" + c.Name
	if category != "" {
		name += "-" + Slug(category)
	}
	return short(name, maxJobName)
}

// PeriodicName is the name of the job that tests a cell by itself.
func (c *Config) PeriodicName(cell Cell) string {
	return short("ci-"+c.Name+"-"+cell.Name, maxPeriodicName)
}

// CategoryGroup is the name of the test group that joins a category's rows of
// all cells.
func (c *Config) CategoryGroup(category specs.Category) string { return c.Name + "-" + Slug(category) }

// PostsubmitName is the name of the job that builds the image.
func (c *Config) PostsubmitName() string { return short("post-"+c.Name+"-image", maxJobName) }
