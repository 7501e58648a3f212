// Package github tells GitHub what a run came to: one comment on a pull
// request that is kept up to date, a job summary, annotations. And it asks GitHub
// what a workflow run came to, and for the results among its artifacts.
//
// Everything that is shown comes from results folders, and those may come from
// a fork. So whatever is not this package's own text stands in code, where
// GitHub makes neither mentions, references nor links, with everything encoded
// that Markdown or HTML could take for markup; see [inline] and [block]. What a
// comment says, and how long it is, is decided before anything is posted:
// [Report.Markdown] is pure.
//
// Limits: https://docs.github.com/en/rest/issues/comments (a body of 65,536
// characters; with characters beyond ASCII the same number of bytes is what
// fails first), https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
// (a summary of 1 MiB a step; 10 errors, 10 warnings and 10 notices a step).
package github
