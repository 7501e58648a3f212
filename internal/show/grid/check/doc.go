// Package check finds what TestGrid would lose, refuse or show wrongly in builds and
// in a configuration, why, and how to fix it.
//
// What TestGrid decides, its own code is asked: which objects are builds and
// JUnit, whether a file can be read, what becomes of a configuration. This
// package explains on top of that, names the object, line or field, and adds
// what TestGrid never says because it looks at one moment only: uploads that
// come too late, and in the wrong order. The rules are read from
// github.com/GoogleCloudPlatform/testgrid (util/gcs, pkg/updater, config) and,
// for Deck and Spyglass, from sigs.k8s.io/prow.
package check
