// Package grid makes the very grid that TestGrid would show of builds in a
// bucket, in a folder, or in memory: it runs TestGrid's own updater and
// summarizer (github.com/GoogleCloudPlatform/testgrid, pkg/updater and
// pkg/summarizer) in process and returns what they wrote as plain values.
//
// Nothing of TestGrid's rules is written here a second time. What is here is
// the surroundings that the updater expects: a client for objects that are not
// in Google Cloud Storage, a place in memory for its state, and a configuration
// where there is none.
package grid
