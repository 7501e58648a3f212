package config

import (
	"strconv"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
)

// RunFlags are the flags of 'op-readiness run' that hold for a cell wherever its
// jobs run. Its cluster, categories and shards are each job's own matter.
func (c *Config) RunFlags(cell Cell) []string {
	var flags []string
	add := func(flag string, values ...string) {
		for _, v := range values {
			flags = append(flags, "--"+flag+"="+v)
		}
	}
	if class := cell.RuntimeClass(); class != "" {
		add("runtime-class", class)
	}
	if c.Run.E2EProvider != e2e.DefaultProvider {
		add("provider", c.Run.E2EProvider)
	}
	if c.Run.Procs > 0 {
		add("procs", strconv.Itoa(c.Run.Procs))
	}
	if c.Run.Retries > 0 {
		add("retries", strconv.Itoa(c.Run.Retries))
	}
	add("without", c.Run.Without...)
	if c.Run.AirGapped {
		flags = append(flags, "--air-gapped")
	}
	if c.Run.AllowReboot {
		flags = append(flags, "--allow-reboot")
	}
	if c.Run.Additional {
		flags = append(flags, "--additional")
	}
	if c.Run.Trial {
		flags = append(flags, "--trial")
	}
	return flags
}
