package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Dialled is what came of dials, by the name that has answered.
type Dialled struct {
	Answers map[string]int
	// Failed is how many got no answer, and Why is what the last of them met.
	Failed int
	Why    string
}

// Add adds what netexec of agnhost says of dials: {"responses": […], "errors": […]}.
// On Windows a host's name may come in capitals.
func (d *Dialled) Add(said []byte) error {
	var now struct {
		Responses []string `json:"responses"`
		Errors    []string `json:"errors"`
	}
	if err := json.Unmarshal(said, &now); err != nil {
		return fmt.Errorf("%q: %w", cut(string(said)), err)
	}
	if d.Answers == nil {
		d.Answers = map[string]int{}
	}
	for _, name := range now.Responses {
		d.Answers[strings.ToLower(strings.TrimSpace(name))]++
	}
	d.Failed += len(now.Errors)
	if n := len(now.Errors); n > 0 {
		d.Why = cut(now.Errors[n-1])
	}
	return nil
}

// Refuse counts dials that could not be made.
func (d *Dialled) Refuse(n int, why string) {
	d.Failed += n
	d.Why = cut(why)
}

// Strangers returns which answers came from nobody of those names.
func (d *Dialled) Strangers(names []string) []string {
	var strange []string
	for _, name := range slices.Sorted(maps.Keys(d.Answers)) {
		if !slices.Contains(names, name) {
			strange = append(strange, cut(name))
		}
	}
	return strange
}

// Reached returns what is other than that all of the names have answered, and nobody
// else, and that none of the dials failed. None is none.
func (d *Dialled) Reached(names []string) []string {
	var problems, missing []string
	for _, name := range names {
		if d.Answers[name] == 0 {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		problems = append(problems, fmt.Sprintf("%d of %d did not answer: %s", len(missing), len(names), strings.Join(missing, ", ")))
	}
	if strange := d.Strangers(names); len(strange) > 0 {
		problems = append(problems, fmt.Sprintf("others answered: %s", strings.Join(strange, ", ")))
	}
	if d.Failed > 0 {
		problems = append(problems, fmt.Sprintf("%s failed, the last by: %s", count(d.Failed, "connection"), d.Why))
	}
	return problems
}

// Avoided returns what is other than that none of the names has answered: others may,
// where a resolver knows an answer for every name. None is none.
func (d *Dialled) Avoided(names []string) []string {
	var problems []string
	for _, name := range names {
		if d.Answers[name] > 0 {
			problems = append(problems, fmt.Sprintf("%s answered", name))
		}
	}
	if len(d.Answers) == 0 && d.Failed == 0 {
		problems = append(problems, "nothing was connected to")
	}
	return problems
}

// Spread returns who of several got more than half of the answers; "" for nobody.
func (d *Dialled) Spread() string {
	all := 0
	for _, n := range d.Answers {
		all += n
	}
	for _, name := range slices.Sorted(maps.Keys(d.Answers)) {
		if n := d.Answers[name]; 2*n > all {
			return fmt.Sprintf("%s answered %d of %d connections: they are not spread", name, n, all)
		}
	}
	return ""
}
