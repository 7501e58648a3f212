package redact

// EveryRule applies every rule to a line, whichever keywords it holds.
func EveryRule(line string) string {
	all := rules()
	for i := range all {
		line = all[i].apply(line)
	}
	return line
}

// WithoutKeywords counts the rules that no keyword leads to.
func WithoutKeywords() (n int) {
	for _, r := range rules() {
		if len(r.keywords) == 0 {
			n++
		}
	}
	return n
}
