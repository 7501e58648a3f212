package judge

import (
	"encoding/json"
	"strings"
	"testing"
)

// defended is a node on which Defender scans all but what is given.
func defended(processes, paths []string) Defender {
	return Defender{
		Service: "Running", Mode: "Normal", Processes: processes, Paths: paths,
		Containerd: `C:\Program Files\containerd\containerd.exe`,
		Command:    `"C:\Program Files\containerd\containerd.exe" --run-service`,
		Root:       `"C:\\ProgramData\\containerd\\root"`, State: `'C:\ProgramData\containerd\state'`,
	}
}

func TestLeavesContainerd(t *testing.T) {
	moved := defended(nil, []string{`D:\ctr root`, `E:\state`})
	moved.Command = `C:\containerd.exe --root "D:\ctr root" --state=E:\state\x`
	configured := defended(nil, []string{`D:\containerd`})
	configured.Root, configured.State = `'D:\containerd\root'`, `"D:\\containerd\\state"`
	unsaid := defended(nil, []string{`c:/programdata/containerd/`})
	unsaid.Root, unsaid.State = "", ""
	withMode := func(mode string) Defender {
		d := defended(nil, nil)
		d.Mode = mode
		return d
	}
	withService := func(service string) Defender {
		d := defended(nil, nil)
		d.Service = service
		return d
	}
	gone := defended([]string{"containerd.exe"}, nil)
	gone.Containerd = ""
	for what, c := range map[string]struct {
		d            Defender
		how, problem string
	}{
		"by name":                 {defended([]string{"kubelet.exe", "Containerd.exe"}, nil), "leaves out process Containerd.exe", ""},
		"by path":                 {defended([]string{`c:\program files\containerd\containerd.exe`}, nil), "leaves out process", ""},
		"by a folder":             {defended([]string{`C:\Program Files\*`}, nil), "leaves out process", ""},
		"by a wildcard":           {defended([]string{`C:\*\containerd\containerd.exe`}, nil), "leaves out process", ""},
		"by the folders":          {defended(nil, []string{`C:\ProgramData\containerd\root`, `C:\ProgramData\containerd\state\`}), `root and C:\ProgramData`, ""},
		"by one above":            {defended(nil, []string{`C:\ProgramData\containerd`}), "leaves out", ""},
		"by all in one":           {defended(nil, []string{`C:\ProgramData\containerd\*`}), "leaves out", ""},
		"of the command line":     {moved, `D:\ctr root and E:\state`, ""},
		"of the configuration":    {configured, "leaves out", ""},
		"of the usual place":      {unsaid, "leaves out", ""},
		"in passive mode":         {withMode("Passive Mode"), "does not scan: Passive Mode", ""},
		"not there":               {withService(""), "is not there", ""},
		"stopped":                 {withService("Stopped"), "is Stopped", ""},
		"without a mode":          {withMode(""), "", "scans process"},
		"no exclusion":            {defended(nil, nil), "", `folder C:\ProgramData\containerd\root of containerd's root, and folder C:\ProgramData\containerd\state`},
		"the root alone":          {defended(nil, []string{`C:\ProgramData\containerd\root`}), "", `and folder C:\ProgramData\containerd\state of containerd's state; it leaves out processes [] and paths ["C:\\ProgramData\\containerd\\root"]`},
		"of another name":         {defended([]string{"containerd"}, nil), "", "scans process"},
		"of another path":         {defended([]string{`D:\containerd.exe`}, nil), "", "scans process"},
		"of a name that begins":   {defended(nil, []string{`C:\ProgramData\containerd\roo`, `C:\ProgramData\containerd\stat`}), "", "scans process"},
		"as another's dot":        {defended([]string{`containerdxexe`}, nil), "", "scans process"},
		"hidden":                  {defended([]string{"N/A: Administrators are not allowed to view exclusions"}, nil), "", "are hidden"},
		"containerd does not run": {gone, "", "no process containerd.exe runs"},
		"nothing excluded":        {defended([]string{""}, []string{"", " "}), "", "scans process"},
	} {
		data, err := json.Marshal(c.d)
		if err != nil {
			t.Fatal(err)
		}
		read, err := ReadDefender(answerPrefix + string(data))
		if err != nil {
			t.Fatal(err)
		}
		how, problem := read.LeavesContainerd()
		if !strings.Contains(how, c.how) || !strings.Contains(problem, c.problem) || (how == "") == (problem == "") || (c.how == "") != (how == "") {
			t.Errorf("%s: how %q, problem %q; want %q, %q", what, how, problem, c.how, c.problem)
		}
	}
	for _, log := range []string{"", "op-readiness: []", `op-readiness: {"service": 4}`, `op-readiness: {"other": 4}`} {
		if _, err := ReadDefender(log); err == nil {
			t.Errorf("%q was read", log)
		}
	}
}

func FuzzLeavesContainerd(f *testing.F) {
	f.Add(`C:\Program Files\containerd\containerd.exe`, `C:\ProgramData\*`, `"C:\\x"`, `x --root "y`)
	f.Add(`*`, `\?[`, `'`, ` --state=(`)
	f.Fuzz(func(t *testing.T, process, path, root, command string) {
		d := defended([]string{process}, []string{path})
		d.Root, d.Command = root, command
		if how, problem := d.LeavesContainerd(); (how == "") == (problem == "") {
			t.Errorf("how %q, problem %q", how, problem)
		}
		if path = windowsPath(path); path != "" && !strings.Contains(path, "N/A") && leavesFolder([]string{path}, path) == "" {
			t.Errorf("%q does not leave out itself", path)
		}
	})
}
