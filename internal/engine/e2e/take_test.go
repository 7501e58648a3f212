package e2e

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// slow is an output that takes its time.
type slow struct {
	bytes.Buffer
	delay time.Duration
}

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(s.delay)
	return s.Buffer.Write(p)
}

func TestOutputThatIsTakenSlowlyIsTakenWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		exited := make(chan struct{})
		go func() {
			_, _ = io.WriteString(w, "one ")
			close(exited) // what is printed last is still in the pipe
			_, _ = io.WriteString(w, "two ")
			_, _ = io.WriteString(w, "three")
			w.Close()
		}()
		output := slow{delay: time.Hour}
		take(r, &output, exited)
		if output.String() != "one two three" {
			t.Errorf("taken: %q", output.String())
		}
	})
}

func TestOutputThatAGrandchildHoldsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		exited := make(chan struct{})
		go func() {
			time.Sleep(time.Hour) // silence before the end counts for nothing
			_, _ = io.WriteString(w, "one ")
			close(exited)
			time.Sleep(patience - time.Second)
			_, _ = io.WriteString(w, "two")
		}()
		var output bytes.Buffer
		take(r, &output, exited)
		if output.String() != "one two" {
			t.Errorf("taken: %q", output.String())
		}
	})
}
