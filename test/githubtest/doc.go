// Package githubtest plays GitHub's API for tests: pull requests and comments
// that are kept, workflow runs with their artifacts, tokens and what they may do,
// pages, limits, and the faults that a test asks for. Artifacts are downloaded from
// another host, as GitHub has it, and a token that is sent there fails the test.
//
// Every request, and every answer that is not a fault, is held against GitHub's
// own OpenAPI description ([Describe]). What the answers look like is taken from
// the examples in that description, in testdata.
package githubtest
