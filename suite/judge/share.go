package judge

import "fmt"

// shared is what a writer, or a reader, found in the shared folder.
type shared struct {
	// Saw is how many lines of each other writer were there before the last own one.
	Saw map[string]int `json:"saw"`
	// Lines is how many whole lines of each writer there were in the end, and All
	// how many lines, whole or not.
	Lines map[string]int `json:"lines"`
	All   int            `json:"all"`
}

// Shared returns what is wrong with files that writers shared, by the log of each:
// before its own last line each has seen one of every other, and in the end all see
// as many whole lines as everybody wrote. None is none.
func Shared(writers []string, each int, logs []string) []string {
	var problems []string
	for i, who := range writers {
		var s shared
		if err := answer(logs[i], &s); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", who, err))
			continue
		}
		for _, other := range writers {
			if other != who && s.Saw[other] < 1 {
				problems = append(problems, fmt.Sprintf("%s had seen no line of %s when it wrote its last one", who, other))
			}
		}
		problems = append(problems, s.lacks(who, writers, each)...)
	}
	return problems
}

// SharedLater returns what somebody who came after the writers did not find, by its
// log. None is none.
func SharedLater(writers []string, each int, log string) []string {
	var s shared
	if err := answer(log, &s); err != nil {
		return []string{fmt.Sprintf("whoever came later: %v", err)}
	}
	return s.lacks("whoever came later", writers, each)
}

func (s *shared) lacks(who string, writers []string, each int) []string {
	var problems []string
	for _, other := range writers {
		if s.Lines[other] != each {
			problems = append(problems, fmt.Sprintf("%s reads %d whole lines of %s, which wrote %d", who, s.Lines[other], other, each))
		}
	}
	if s.All != each*len(writers) {
		problems = append(problems, fmt.Sprintf("%s reads %d lines, and %d were written", who, s.All, each*len(writers)))
	}
	return problems
}
