//go:build !linux

package realnode

import (
	"context"
	"io"
	"runtime"
)

// Check returns an [*UnfitError]: a real node needs Linux.
func Check(context.Context) error {
	return &UnfitError{Missing: []string{"Linux (this is " + runtime.GOOS + ")"}}
}

// Install does nothing here.
func Install(context.Context, io.Writer) error { return nil }
