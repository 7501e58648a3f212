package result

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
)

// scan reads results.jsonl of a folder: it calls take for every event that is
// well-formed, with its line number, and problem with what is wrong with the
// others. A last line that was cut off is a problem of its own kind.
func scan(root *os.Root, take func(e *Event, line int), problem func(text string, cutOff bool)) error {
	name := root.Name() + "/" + EventsFile
	file, err := openRegular(root, EventsFile, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		problem(EventsFile+" is missing: nothing was recorded", false)
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	rest := &io.LimitedReader{R: file, N: maxEventsFile + 1}
	lines := bufio.NewReaderSize(rest, maxEventLine)
	all := 0
	for n := 1; ; n++ {
		problemf := func(format string, args ...any) {
			problem(fmt.Sprintf("%s: line %d%s", EventsFile, n, fmt.Sprintf(format, args...)), false)
		}
		line, err := lines.ReadSlice('\n')
		tooLong := false
		for errors.Is(err, bufio.ErrBufferFull) {
			tooLong = true
			line, err = lines.ReadSlice('\n')
		}
		switch {
		case rest.N == 0:
			return fmt.Errorf("%s is over %d MiB", name, maxEventsFile>>20)
		case err == io.EOF && len(line) == 0 && !tooLong:
			return nil
		case err == io.EOF:
			problem(fmt.Sprintf("%s: line %d was cut off: the run was killed while it wrote it", EventsFile, n), true)
			return nil
		case err == nil && tooLong:
			problemf(" is over %d bytes", maxEventLine)
			continue
		case err != nil:
			return fmt.Errorf("%s: line %d: %w", name, n, err)
		case n > maxEvents:
			return fmt.Errorf("%s has over %d lines", name, maxEvents)
		}
		count := values(line)
		if count > maxEventValues {
			problemf(": %v", tooMany(count, maxEventValues))
			continue
		}
		if all += count; all > maxAllEventValues {
			return fmt.Errorf("%s holds over %d values: a run writes far fewer", name, maxAllEventValues)
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			problemf(": %v", err)
			continue
		}
		if lacks := e.lacks(); lacks != "" {
			problemf(": %s without %s", e.Type, lacks)
			continue
		}
		e.clean()
		take(&e, n)
	}
}

// clean takes secrets out of what an event says in words, and bounds the figures
// of a test, which no other event tells: whoever wrote the folder may not have done
// so, and what is read of it is shown, posted and published.
func (e *Event) clean() {
	if t := e.Test; t != nil {
		if e.Type != TestMeasured {
			t.Measured = nil
		}
		t.Measured = FitMeasurements(t.Measured)
		t.Message, t.Unobserved, t.Meanwhile = redact.String(t.Message), redact.String(t.Unobserved), redact.String(t.Meanwhile)
	}
	if e.Case != nil {
		e.Case.Reason = redact.String(e.Case.Reason)
	}
	if e.Suite != nil {
		e.Suite.Message = redact.String(e.Suite.Message)
	}
}

// lacks names the part that an event of its type must have, and this one has
// not; "" where it is complete.
func (e *Event) lacks() string {
	switch e.Type {
	case CaseDecided:
		if e.Case == nil {
			return "a case"
		}
	case BatchStarted, BatchSuite, BatchFinished:
		if e.Batch == nil {
			return "a batch"
		}
	case TestStarted, TestFinished, TestMeasured:
		if e.Test == nil {
			return "a test"
		}
	case SuiteFailed, ClusterLeft:
		if e.Suite == nil {
			return "a suite failure"
		}
	case PodObserved:
		if e.Pod == nil {
			return "a pod"
		}
	}
	return ""
}
