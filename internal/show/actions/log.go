package actions

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
)

// Log writes to a step's log, in which the runner looks for commands. What comes
// through Write is none to it, whoever wrote it; the commands of this package
// are.
type Log struct {
	mu   sync.Mutex
	w    io.Writer
	line []byte
	err  error
}

// NewLog returns a Log on w, which is to be closed.
func NewLog(w io.Writer) *Log { return &Log{w: w} }

// maxLine bounds what is held back: what is longer goes on in another line.
const maxLine = 1 << 20

// Write takes the next piece of text, and passes on its whole lines.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := p; len(rest) > 0 && l.err == nil; {
		// To the runner, a carriage return ends a line, too.
		end := bytes.IndexAny(rest, "\r\n")
		if end < 0 {
			l.line = append(l.line, rest...)
			if len(l.line) > maxLine {
				l.flush("\n")
			}
			break
		}
		l.line = append(l.line, rest[:end]...)
		l.flush(string(rest[end]))
		rest = rest[end+1:]
	}
	return len(p), l.err
}

func (l *Log) flush(end string) {
	line := shown.NoCommand(string(l.line))
	l.line = l.line[:0]
	if l.err == nil {
		_, l.err = io.WriteString(l.w, line+end)
	}
}

// Close writes a last line that had no end. It does not close the underlying
// writer.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) > 0 {
		l.flush("")
	}
	return l.err
}

// command writes a command, which may be of several lines.
func (l *Log) command(text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) > 0 {
		l.flush("\n")
	}
	if l.err == nil {
		_, l.err = io.WriteString(l.w, text)
	}
	return l.err
}

// command writes a command to w, which may be a Log.
func command(w io.Writer, text string) error {
	if log, ok := w.(*Log); ok {
		return log.command(text)
	}
	_, err := io.WriteString(w, text)
	return err
}

// BeginGroup begins lines that are folded under a title. GitHub reads this form
// of the command from the log, so that it folds also where commands are stopped,
// as the action does for what it runs.
func BeginGroup(w io.Writer, title string) error {
	return command(w, fmt.Sprintf("##[group]%s\n", shown.Line(title)))
}

// EndGroup ends them.
func EndGroup(w io.Writer) error { return command(w, "##[endgroup]\n") }
