// Package githubtest plays GitHub's API for tests: pull requests and comments
// that are kept, tokens and what they may do, pages, limits, and the faults that
// a test asks for.
//
// Every request, and every answer that is not a fault, is held against GitHub's
// own OpenAPI description ([Describe]). What the answers look like is taken from
// the examples in that description, in testdata.
package githubtest
