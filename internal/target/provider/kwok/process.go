package kwok

// process is one process of this machine: its id and its arguments, joined by
// spaces.
type process struct {
	id      int
	command string
}
