package evidence

import "time"

// SetLag changes how long the watch waits for what lags behind.
func (w *Watch) SetLag(d time.Duration) { w.lag = d }

// SetKeep changes for how long is kept what is not known to be of the run.
func (w *Watch) SetKeep(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keep = d
}

// Kept counts the pods that are kept.
func (w *Watch) Kept() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, pods := range w.seen {
		n += len(pods)
	}
	return n
}
