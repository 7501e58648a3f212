package e2e

import "github.com/shirou/gopsutil/v4/process"

// startTime returns when the process began, in milliseconds since the epoch.
// A process that has ended and was not waited for yet does not count.
func startTime(pid int) (int64, error) {
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return 0, err
	}
	if status, err := p.Status(); err == nil && len(status) > 0 && status[0] == process.Zombie {
		return 0, process.ErrorProcessNotRunning
	}
	return p.CreateTime()
}
