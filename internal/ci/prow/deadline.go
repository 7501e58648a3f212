package prow

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// entrypointTimeout is Prow's timeout where a job has none of its own:
// https://github.com/kubernetes-sigs/prow/blob/main/pkg/entrypoint/run.go
const entrypointTimeout = 2 * time.Hour

// Deadline is when a run is to end; zero where there is no end, also for a nil j.
//
// With a reserve, it is so long before Prow's timeout. Without one it is shortly
// after: at the timeout Prow interrupts the job's command only. A script that
// called this program does not pass that on, and time would run on until Prow
// kills.
//
// The timeout is counted from when Prow's entrypoint began: what a script did
// before it called this program took some of it. now stands for that where no
// entrypoint is found among the ancestors of this process.
func (j *Job) Deadline(now time.Time, reserve time.Duration) time.Time {
	if j == nil || !j.Decorated() {
		return time.Time{}
	}
	timeout := entrypointTimeout
	if d := j.spec.DecorationConfig.Timeout; d != nil && d.Duration > 0 {
		timeout = d.Duration
	}
	began := now
	if at := entrypointStart(os.Getppid()); !at.IsZero() && at.Before(now) {
		began = at
	}
	if reserve > 0 {
		return began.Add(timeout - reserve)
	}
	// Where Prow's interrupt does come, it comes first.
	return began.Add(timeout + min(j.GracePeriod()/10, 5*time.Second))
}

// entrypointStart looks among the ancestors of a process for Prow's entrypoint,
// which counts the timeout, and returns when it began; zero where there is none.
func entrypointStart(pid int) time.Time {
	const deepest = 64
	for range deepest {
		p, err := process.NewProcess(int32(pid))
		if err != nil {
			break
		}
		if words, err := p.CmdlineSlice(); err == nil && len(words) > 0 &&
			(filepath.Base(words[0]) == "entrypoint" || len(words) == 4 && slices.Equal(words[1:], []string{"prow", "utility", "entrypoint"})) {
			if ms, err := p.CreateTime(); err == nil {
				return time.UnixMilli(ms)
			}
			break
		}
		parent, err := p.Ppid()
		if err != nil || parent <= 0 || int(parent) == pid {
			break
		}
		pid = int(parent)
	}
	return time.Time{}
}
