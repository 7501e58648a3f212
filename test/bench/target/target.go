// Package target ends benchmarks: with code 1 where a target is missed, and with 2 where
// nothing could be measured.
package target

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
)

// ErrMissed says that a target is missed, which was shown already.
var ErrMissed = errors.New("a target is missed")

// Main runs a benchmark until it ends or is interrupted, and ends the process unless all is
// well.
func Main(run func(context.Context) error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	cancel()
	Exit(err)
}

// Exit ends the process unless the error is nil.
func Exit(err error) {
	switch {
	case errors.Is(err, ErrMissed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
}
