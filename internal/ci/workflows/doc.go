// Package workflows makes GitHub workflows from op-readiness.yaml: one that runs
// for pull requests, one that runs by the clock, and the trusted one that
// comments.
//
// What it promises: the workflows call the reusable ones of this project and
// contain no script of their own; each job has the permissions that it needs and
// no other; a pull request from a fork gets no secret, and no job that would need
// one. The same configuration always makes the same bytes.
//
// Format: https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax.
package workflows
