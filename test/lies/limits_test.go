//go:build linux

package lies

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/run"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

var idles = tell("a suite that idles when its tests have passed", func(int) lie {
	return lie{after: func(*program) { select {} }}
})

func TestASuiteThatIdles(t *testing.T) {
	t.Parallel()
	b := newBench(t, idles, planOf(t, 1, "Core.Storage"), 1)
	b.options.IdleLimit, b.options.Grace = 2*time.Second, time.Second
	if err := run.Run(t.Context(), b.options); err != nil {
		t.Fatal(err)
	}
	done := load(t, b.options.Folder.Dir())
	if j := verdict.Judge(done); j.Verdict == verdict.Ready || len(done.Suites) == 0 {
		t.Errorf("%s, suite failures %+v", j.Verdict, done.Suites)
	}
}

// Of whatever a report of 250 MiB is made, reading it takes less memory than it
// has bytes.
func TestALargeReportTakesLittleMemory(t *testing.T) {
	t.Parallel()
	const size, limit = 250 << 20, 256 << 10 // bytes, KiB
	failed := `{"LeafNodeType":"It","LeafNodeText":"a","State":"failed","RunTime":1,"Failure":{"Message":"` + strings.Repeat("x", 1000) + `"}},`
	for what, c := range map[string]struct{ begin, again string }{
		"tests that failed":        {"", failed},
		"one long message":         {`{"LeafNodeType":"It","Failure":{"Message":"`, strings.Repeat("x", 1000)},
		"one long list":            {`{"ContainerHierarchyTexts":[`, strings.Repeat(`"",`, 1000)},
		"one test, time and again": {"", strings.ReplaceAll(failed, `"a"`, fmt.Sprintf("%q", first))},
	} {
		path := filepath.Join(t.TempDir(), "report.json")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriter(file)
		fmt.Fprint(w, `[{"SuiteSucceeded":true,"SpecReports":[`+c.begin)
		for range size / len(c.again) {
			fmt.Fprint(w, c.again)
		}
		fmt.Fprint(w, `{}]}]`)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		file.Close()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), readEnv+"="+path)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "read:") {
			t.Fatalf("%s: %v\n%s", what, err, out)
		}
		if peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; peak > limit {
			t.Errorf("%s: reading takes %d MiB", what, peak>>10)
		}
		os.Remove(path)
	}
}
