//go:build unix

package result

import "syscall"

// nonBlocking lets a pipe in a results folder be opened, and refused, without
// waiting for who writes into it.
const nonBlocking = syscall.O_NONBLOCK
