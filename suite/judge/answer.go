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

// count is "1 pod", "2 pods".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// are is "1 pod is", "2 pods are".
func are(n int, what string) string {
	if n == 1 {
		return count(n, what) + " is"
	}
	return count(n, what) + " are"
}

func cut(text string) string {
	const most = 500
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
