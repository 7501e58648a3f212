//go:build linux || darwin

// Command evidence measures what it costs to observe where pods ran.
//
// Usage, from the root of the repository:
//
//	go run ./test/bench/evidence
//
// It measures two things.
//
// What evidence adds to a real run: real tests of e2e.test on a simulated
// cluster that it makes, through the engine of op-readiness. A run has to begin
// the watch, to wait at the end of each test until the watch has caught up, and
// to stop it; the program times exactly these calls, and everything that is not
// in them is done by other threads while the tests wait for the cluster. The
// ratio is that time over the wall time of the same run without it. Whole runs
// with and without evidence are not held against each other for the verdict: a
// run of the same tests varies by more than the target from one time to the
// next. Their median wall times, by turns, are printed beside it, for the eye.
//
// What it takes to keep up with a large cluster: a stream of 10,000 events of
// pods in 200 namespaces, sent over HTTP as a watch, to the real informer. Every
// pod must be attributed to the test whose namespace it is in, with its node,
// images and last phase, and no other; the process, server and expectations
// included, must stay below the limit of memory.
//
// It exits with 1 when a target is missed, 2 when it could not measure.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"text/tabwriter"
)

// The targets.
const (
	wantShare  = 0.02
	wantMemory = 50 << 20 // bytes
)

var errMissed = errors.New("a target is missed")

func main() { os.Exit(code()) }

func code() int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	// The stream comes first: the other leaves garbage behind.
	stream, err := measureStream(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 2
	}
	share, err := measureShare(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 2
	}
	if err := print(append(share, stream...)); err != nil {
		return 1
	}
	return 0
}

// row is a line of the table; one without a target is for the eye.
type row struct {
	what, measured, target string
	ok                     bool
}

func tell(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }

func print(rows []row) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tmeasured\ttarget\t")
	missed := false
	for _, r := range rows {
		word := ""
		if r.target != "" {
			word = "PASS"
			if !r.ok {
				word, missed = "FAIL", true
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.what, r.measured, r.target, word)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if missed {
		return errMissed
	}
	return nil
}
