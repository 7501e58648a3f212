//go:build linux

package realnode

// Lock is the lock that whoever has a node holds.
var Lock = lock
