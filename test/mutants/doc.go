// Package mutants shows that the tests of suite op-readiness can fail. Each of
// them passes on a cluster of the bed, and fails, for the reason that it is there
// to find, once one thing about that cluster is broken: by an admission policy, or
// by a client that does what a broken component would. Nothing in the suite is
// changed for it.
package mutants
