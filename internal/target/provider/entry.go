package provider

import "time"

// Schema is the version of [Entry] that this program writes. It reads no newer one.
const Schema = 1

// Life is how far a cluster has come.
type Life string

// The life of a cluster, in this order. An entry says the next one before anything is
// done.
const (
	Creating Life = "creating"
	Up       Life = "up"
	Deleting Life = "deleting"
	Removed  Life = "gone"
)

// Entry is what the ledger knows of one cluster: after a kill at any moment it names
// everything that can exist.
type Entry struct {
	Schema  int       `json:"schema"`
	Life    Life      `json:"state"`
	Plan    Plan      `json:"plan"`
	Created time.Time `json:"created"`
	// Ended is when the cluster was gone.
	Ended time.Time `json:"ended,omitzero"`
	// Kept says that somebody wants to look at the cluster until it expires.
	Kept bool `json:"kept,omitempty"`
	// Steps are those that were begun.
	Steps []StepTaken `json:"steps"`
	// Child is the process that makes the cluster for a provider whose library cannot
	// be interrupted.
	Child *Process `json:"child,omitempty"`

	Kubeconfig string `json:"kubeconfig,omitempty"`
	Context    string `json:"context,omitempty"`
	// Published are the user's own kubeconfigs that were given the context.
	Published []Publication `json:"published,omitempty"`
}

// StepTaken is a step that was begun.
type StepTaken struct {
	Name  string    `json:"name"`
	Begun time.Time `json:"begun"`
	// Ended is zero for a step whose end nobody saw.
	Ended time.Time `json:"ended,omitzero"`
}

// Process is a process of this machine.
type Process struct {
	PID int `json:"pid"`
	// Started is in milliseconds since the epoch; another process may get the same id.
	Started int64 `json:"started"`
}

// Publication is a kubeconfig that was given a cluster's context, and its current
// context before.
type Publication struct {
	File string `json:"file"`
	// Server is the API server that the context leads to.
	Server   string `json:"server"`
	Previous string `json:"previous,omitempty"`
}
