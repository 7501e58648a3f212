// Package actionstest reads a step's log as the runner of GitHub Actions does,
// for tests: which of its lines are commands. It follows ActionCommandManager.cs
// and ActionCommand.cs of https://github.com/actions/runner (v2.336).
package actionstest

import (
	"slices"
	"strings"
	"unicode"
)

// Command is a command that the runner obeys.
type Command struct {
	Name, Properties, Data string
}

// registered are the commands that the runner knows.
var registered = []string{
	"stop-commands", "set-env", "set-output", "save-state", "add-path", "add-mask", "add-matcher", "remove-matcher",
	"debug", "warning", "error", "notice", "group", "endgroup", "echo",
}

// Obeyed returns the commands in a log that are obeyed, in their order: also
// those that stop commands, and let them go on.
func Obeyed(log string) []Command {
	var obeyed []Command
	stop := ""
	for line := range strings.SplitSeq(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(log), "\n") {
		known := func(name string) bool {
			return slices.ContainsFunc(registered, func(r string) bool { return strings.EqualFold(r, name) }) || stop != "" && strings.EqualFold(stop, name)
		}
		c, is := parseV2(line, known)
		if !is {
			c, is = parse(line, known)
		}
		switch {
		case !is:
			continue
		case stop != "" && !strings.EqualFold(c.Name, stop):
			continue
		case stop != "":
			stop = ""
		case strings.EqualFold(c.Name, "stop-commands"):
			stop = c.Data
		}
		obeyed = append(obeyed, c)
	}
	return obeyed
}

// parseV2 reads ::name properties::data at the start of a line, behind blanks.
func parseV2(line string, known func(string) bool) (Command, bool) {
	rest, is := strings.CutPrefix(strings.TrimLeftFunc(line, unicode.IsSpace), "::")
	info, data, more := strings.Cut(rest, "::")
	name, properties, _ := strings.Cut(info, " ")
	return Command{name, properties, data}, is && more && known(name)
}

// parse reads ##[name properties]data anywhere in a line.
func parse(line string, known func(string) bool) (Command, bool) {
	_, rest, is := strings.Cut(line, "##[")
	info, data, more := strings.Cut(rest, "]")
	name, properties, _ := strings.Cut(info, " ")
	return Command{name, properties, data}, is && more && known(name)
}
