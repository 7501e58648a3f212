package actions

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Output is a named value that a step hands on.
type Output struct{ Name, Value string }

var outputName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// WriteOutputs appends outputs to the file that $GITHUB_OUTPUT names. Values
// may hold anything: the end of each is a random word.
func WriteOutputs(path string, outputs []Output) error {
	var b strings.Builder
	for _, o := range outputs {
		if !outputName.MatchString(o.Name) {
			return fmt.Errorf("%q cannot name an output: letters, digits, '-' and '_' can", o.Name)
		}
		var random [16]byte
		rand.Read(random[:]) // never fails
		end := "end-" + hex.EncodeToString(random[:])
		fmt.Fprintf(&b, "%s<<%s\n%s\n%s\n", o.Name, end, o.Value, end)
	}
	return appendTo(path, b.String())
}

// MaxSummary is how much GitHub takes of one step's summary, in bytes; of more
// it shows nothing.
const MaxSummary = 1 << 20

// WriteSummary appends Markdown to the file that $GITHUB_STEP_SUMMARY names. It
// is an error when the summary of the step would be too long.
func WriteSummary(path, markdown string) error {
	if info, err := os.Stat(path); err == nil && info.Size()+int64(len(markdown)) > MaxSummary {
		return fmt.Errorf("the job summary would have %d bytes, and GitHub takes %d", info.Size()+int64(len(markdown)), MaxSummary)
	}
	return appendTo(path, markdown)
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("telling GitHub Actions: %w", err)
	}
	_, err = file.WriteString(text)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("telling GitHub Actions: %w", err)
	}
	return nil
}
