//go:build !linux

package realnode

import (
	"context"
	"io"
	"runtime"
)

// Unable returns that nodes in containers need Linux.
func Unable() []string { return []string{"Linux (this is " + runtime.GOOS + ")"} }

// Check returns an [*UnfitError]: a real node needs Linux.
func Check(context.Context) error { return &UnfitError{Missing: Unable()} }

// Install does nothing here.
func Install(context.Context, io.Writer) error { return nil }
