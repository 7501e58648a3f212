package actions

import (
	"fmt"
	"io"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

// Level is how grave an annotation is.
type Level string

// The levels, the gravest first.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Notice  Level = "notice"
)

var levels = []Level{Error, Warning, Notice}

// Annotation is a note beside a workflow run.
type Annotation struct {
	Level Level
	// Title and Text may come from anywhere; lines of Text are kept.
	Title, Text string
}

const (
	// perLevel is how many annotations of a level GitHub takes from a step; it
	// drops the others without a word.
	perLevel = 10
	maxTitle = 250
	// GitHub shows 4 KiB of an annotation.
	maxText = 4 << 10
)

// Annotate writes annotations as workflow commands, the gravest first and each
// once. Those that GitHub would drop are counted in the last one of their level.
func Annotate(w io.Writer, annotations []Annotation) error {
	for _, level := range levels {
		var lines []string
		seen := map[string]bool{}
		for _, a := range annotations {
			if a.Level != level {
				continue
			}
			line := fmt.Sprintf("::%s title=%s::%s\n", level, property.Replace(clean(a.Title, maxTitle)), message.Replace(clean(a.Text, maxText)))
			if !seen[line] {
				seen[line] = true
				lines = append(lines, line)
			}
		}
		if more := len(lines) - perLevel; more > 0 {
			lines = append(lines[:perLevel-1], fmt.Sprintf("::%s title=And more::%d more of this kind are in the report\n", level, more+1))
		}
		for _, line := range lines {
			if err := command(w, line); err != nil {
				return fmt.Errorf("writing annotations: %w", err)
			}
		}
	}
	return nil
}

// How the runner reads commands back:
// https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts
var (
	message  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// clean returns at most about limit bytes of s, fit to be shown.
func clean(s string, limit int) string { return shown.Lines(text.Cut(s, limit)) }

// Mask has the runner write *** for texts in all logs of the job. Each is one
// line.
func Mask(w io.Writer, texts []string) error {
	for _, text := range texts {
		if err := command(w, "::add-mask::"+message.Replace(text)+"\n"); err != nil {
			return fmt.Errorf("masking secrets: %w", err)
		}
	}
	return nil
}
