package judge

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Defender is what a Windows node says of Microsoft Defender, and of containerd.
type Defender struct {
	// Service is the state of Defender's service; "" for none.
	Service string `json:"service"`
	// Mode is in which mode it runs; "" where that is not said.
	Mode string `json:"mode"`
	// Processes and Paths are what it leaves out.
	Processes []string `json:"processes"`
	Paths     []string `json:"paths"`
	// Containerd is the path of the program that runs, and Command how it was called.
	Containerd string `json:"containerd"`
	Command    string `json:"command"`
	// Root and State are the folders of its configuration, quoted as in TOML.
	Root  string `json:"root"`
	State string `json:"state"`
}

// ReadDefender reads it from the log of script defender.
func ReadDefender(log string) (*Defender, error) {
	var d Defender
	if err := answer(log, &d); err != nil {
		return nil, fmt.Errorf("script defender: %w", err)
	}
	return &d, nil
}

// LeavesContainerd says how it is that Defender leaves containerd alone: it does not
// scan at all; or it leaves out what that process opens, or both folders in which
// containerd keeps its files. The problem is "" then, and otherwise says why it is not.
func (d *Defender) LeavesContainerd() (how, problem string) {
	if d.Containerd == "" {
		return "", "no process containerd.exe runs"
	}
	if d.Service != "Running" {
		if d.Service == "" {
			return "Microsoft Defender is not there", ""
		}
		return "Microsoft Defender is " + d.Service, ""
	}
	switch d.Mode {
	case "Passive Mode", "SxS Passive Mode", "EDR Block Mode", "Not running":
		return "Microsoft Defender does not scan: " + d.Mode, ""
	}
	for _, p := range append(append([]string{}, d.Processes...), d.Paths...) {
		if strings.HasPrefix(p, "N/A") {
			return "", fmt.Sprintf("the exclusions of Microsoft Defender are hidden, also from SYSTEM: %s", p)
		}
	}
	for _, p := range d.Processes {
		if leavesProcess(p, d.Containerd) {
			return fmt.Sprintf("Microsoft Defender leaves out process %s", p), ""
		}
	}
	return d.leavesFolders()
}

func (d *Defender) leavesFolders() (how, problem string) {
	var left, scanned []string
	for _, f := range []struct{ option, value, usual string }{
		{"root", d.Root, `C:\ProgramData\containerd\root`},
		{"state", d.State, `C:\ProgramData\containerd\state`},
	} {
		folder := d.folder(f.option, f.value, f.usual)
		if by := leavesFolder(d.Paths, folder); by != "" {
			left = append(left, by)
		} else {
			scanned = append(scanned, fmt.Sprintf("folder %s of containerd's %s", folder, f.option))
		}
	}
	if len(scanned) == 0 {
		return fmt.Sprintf("Microsoft Defender leaves out %s", strings.Join(left, " and ")), ""
	}
	return "", fmt.Sprintf("Microsoft Defender scans process %s, and %s; it leaves out processes %q and paths %q",
		d.Containerd, strings.Join(scanned, ", and "), d.Processes, d.Paths)
}

// folder returns a folder of containerd's: that of its command line, else that of its
// configuration, else the usual one.
func (d *Defender) folder(option, value, usual string) string {
	if m := regexp.MustCompile(`\s--` + option + `[ =](?:"([^"]+)"|(\S+))`).FindStringSubmatch(d.Command); m != nil {
		return m[1] + m[2]
	}
	value = strings.TrimSpace(value)
	if literal, ok := strings.CutPrefix(value, "'"); ok {
		value = strings.TrimSuffix(literal, "'")
	} else if text, err := strconv.Unquote(value); err == nil {
		value = text
	}
	if value == "" {
		return usual
	}
	return value
}

// leavesProcess reports whether an exclusion of a process is of the program at that
// path: by its name alone, by its path, or by a folder above it that ends with \*.
func leavesProcess(exclusion, program string) bool {
	exclusion, program = windowsPath(exclusion), windowsPath(program)
	if above, ok := strings.CutSuffix(exclusion, `\*`); ok {
		return matches(above, program, true)
	}
	if !strings.Contains(exclusion, `\`) {
		program = program[strings.LastIndex(program, `\`)+1:]
	}
	return matches(exclusion, program, false)
}

// leavesFolder returns the exclusion that is of a folder, or of one above it; "" for none.
func leavesFolder(exclusions []string, folder string) string {
	for _, e := range exclusions {
		if matches(windowsPath(e), windowsPath(folder), true) {
			return e
		}
	}
	return ""
}

// windowsPath returns a path in one of the ways to write it.
func windowsPath(path string) string {
	return strings.TrimRight(strings.ToLower(strings.ReplaceAll(strings.TrimSpace(path), "/", `\`)), `\`)
}

// matches reports whether a path matches an exclusion, in which * stands for any part of
// one name and ? for one character; or is below what does.
func matches(exclusion, path string, below bool) bool {
	if exclusion == "" {
		return false
	}
	pattern := strings.NewReplacer(`\*`, `[^\\]*`, `\?`, `[^\\]`).Replace(regexp.QuoteMeta(exclusion))
	if below {
		pattern += `(\\.*)?`
	}
	match, err := regexp.MatchString(`^(?s:`+pattern+`)$`, path)
	return err == nil && match
}
