// Package actions speaks to GitHub Actions: annotations, outputs, the job
// summary. The forms are those of
// https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
package actions
