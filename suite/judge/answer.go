package judge

import (
	"encoding/json"
	"fmt"
	"strings"
)

// answerPrefix begins the line in which a script says what it has found.
const answerPrefix = "op-readiness: "

// answer reads the one line of a log in which a script says what it has found.
func answer(log string, into any) error {
	found := ""
	for line := range strings.Lines(log) {
		line = strings.TrimRight(line, "\r\n")
		if text, ok := strings.CutPrefix(line, answerPrefix); ok {
			if found != "" {
				return fmt.Errorf("it answers twice")
			}
			found = text
		}
	}
	if found == "" {
		return fmt.Errorf("it gives no answer, but says %q", cut(log))
	}
	decoder := json.NewDecoder(strings.NewReader(found))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("its answer %q cannot be read: %w", cut(found), err)
	}
	return nil
}

func cut(text string) string {
	const most = 500
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
