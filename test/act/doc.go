// Package act holds the tests of the action and of the workflows that others call.
// They run them for real on this machine; see package runner.
package act
