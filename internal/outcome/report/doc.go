// Package report renders plans, lists and results for people and machines.
// Everything in it is a pure function of its arguments.
package report
