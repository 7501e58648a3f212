//go:build linux || darwin

// Command junit measures how fast internal/outcome/junit prunes the JUnit of e2e.test,
// against Kubernetes' own cmd/prune-junit-xml, and how much memory it takes.
//
// Usage, from the root of the repository:
//
//	go run ./test/bench/junit
//
// It makes 200 files of 7,579 cases each, nearly all skipped, about 2.7 MB a
// file; builds Kubernetes' program from the module in upstream/ and ours from
// ours/; and lets each rewrite its own copy of the files in place, as one
// process, one after the other, in three rounds of which the best counts. What
// they wrote is checked. Ours is measured twice: keeping every case, which is the
// very job that prune-junit-xml -prune-tests=false does, and leaving out the
// skipped ones, which is what this project does. It exits with 1 when a target is missed, 2 when it could not
// measure.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/junit"
)

// The targets.
const (
	wantRatio = 3.0      // times the throughput of prune-junit-xml
	wantPeak  = 64 << 20 // bytes of resident memory, less than this
)

var errMissed = errors.New("a target is missed")

func main() {
	files := flag.Int("files", 200, "how many files to make (the target is stated for 200)")
	rounds := flag.Int("rounds", 3, "how often to measure; the best of each process counts")
	keep := flag.Bool("keep", false, "leave the files where they are")
	flag.Parse()
	switch err := run(*files, max(1, *rounds), *keep, os.Stdout, os.Stderr); {
	case errors.Is(err, errMissed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
}

// contender is one process over one set of files.
type contender struct {
	label string
	argv  []string
	dir   string
	keeps func(outcome) bool // which cases must be left afterwards

	bytes   int64
	elapsed time.Duration
	cpu     time.Duration
	peak    int64
}

func (c *contender) throughput() float64 { return float64(c.bytes) / 1e6 / c.elapsed.Seconds() }

func run(files, rounds int, keep bool, out, narration io.Writer) error {
	dir, err := os.MkdirTemp("", "bench-junit-")
	if err != nil {
		return err
	}
	if keep {
		fmt.Fprintln(narration, "the files stay in", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	upstream, ours := filepath.Join(dir, "prune-junit-xml"), filepath.Join(dir, "ours")
	fmt.Fprintln(narration, "building k8s.io/kubernetes/cmd/prune-junit-xml (go build downloads its module the first time)")
	if err := build("test/bench/junit/upstream", upstream, "k8s.io/kubernetes/cmd/prune-junit-xml"); err != nil {
		return err
	}
	fmt.Fprintln(narration, "building test/bench/junit/ours")
	if err := build(".", ours, "./test/bench/junit/ours"); err != nil {
		return err
	}

	all := func(outcome) bool { return true }
	contenders := []*contender{
		{label: "prune-junit-xml", argv: []string{upstream, "-prune-tests=false"}, keeps: all},
		{label: "ours, all cases kept", argv: []string{ours, "-keep-all"}, keeps: all},
		{label: "ours, skipped pruned", argv: []string{ours}, keeps: func(o outcome) bool { return o != skipped }},
	}
	original := filepath.Join(dir, "original")
	if err := os.Mkdir(original, 0o755); err != nil {
		return err
	}
	fmt.Fprintf(narration, "making %d files of %d cases\n", files, specs)
	size, err := generate(original, files)
	if err != nil {
		return err
	}
	for round := range rounds {
		for i, c := range contenders {
			c.bytes = size
			c.dir = filepath.Join(dir, fmt.Sprintf("copy-%d", i))
			if err := copyFiles(original, c.dir); err != nil {
				return err
			}
		}
		syscall.Sync() // what is still to be written would disturb whoever is first
		for _, c := range contenders {
			fmt.Fprintf(narration, "round %d of %d: running %s\n", round+1, rounds, c.label)
			if err := c.measure(files); err != nil {
				return err
			}
		}
		for _, c := range contenders {
			if err := c.check(files); err != nil {
				return err
			}
		}
	}
	large, err := adversary(dir, ours, narration)
	if err != nil {
		return err
	}
	return report(out, files, contenders, large)
}

// build runs go build in a folder.
func build(dir, output, pkg string) error {
	cmd := exec.Command("go", "build", "-o", output, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s (in %s, run from the root of the repository): %w\n%s", strings.Join(cmd.Args, " "), dir, err, b)
	}
	return nil
}

// copyFiles makes to a fresh copy of a folder.
func copyFiles(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}

// measure runs the process; the fastest run and the largest memory stay. Its peak memory is the kernel's count, which begins
// with that of this program: a small process seems as large as its parent.
func (c *contender) measure(files int) error {
	args := c.argv[1:]
	for i := range files {
		args = append(args, filepath.Join(c.dir, fileName(i)))
	}
	cmd := exec.Command(c.argv[0], args...)
	var tail strings.Builder
	cmd.Stderr = &tail
	start := time.Now()
	err := cmd.Run()
	elapsed := time.Since(start)
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(c.argv, " "), err, tail.String())
	}
	if c.elapsed == 0 || elapsed < c.elapsed {
		c.elapsed = elapsed
		c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return errors.New("this system does not report the memory of a child process")
	}
	peak := int64(usage.Maxrss) //nolint:unconvert // it has another type on other systems
	if runtime.GOOS != "darwin" {
		peak <<= 10
	}
	c.peak = max(c.peak, peak)
	return nil
}

// check reads what the process left and compares it with what it was to leave:
// a fast program that loses a case has not done the job.
func (c *contender) check(files int) error {
	names := specNames()
	for i := range files {
		path := filepath.Join(c.dir, fileName(i))
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		want := outcomes(i)
		at := 0
		_, err = junit.Read(f, junit.Options{Source: path}, func(got junit.Case) error {
			for at < len(names) && !c.keeps(want[at]) {
				at++
			}
			if at == len(names) || got.Name != "[It] "+names[at] {
				return fmt.Errorf("%s: unexpected case %q", path, got.Name)
			}
			if want[at] == failed && (got.Failure == nil || got.Failure.Body != failureText(at) || got.SystemErr != timeline(at)) {
				return fmt.Errorf("%s: case %q lost its failure", path, got.Name)
			}
			if (got.Skipped != nil) != (want[at] == skipped) {
				return fmt.Errorf("%s: case %q changed its outcome", path, got.Name)
			}
			at++
			return nil
		})
		f.Close()
		if err != nil {
			return err
		}
		for ; at < len(names); at++ {
			if c.keeps(want[at]) {
				return fmt.Errorf("%s: case %q is missing", path, names[at])
			}
		}
	}
	return nil
}

// adversary measures the memory for the worst that the limits allow: one file of
// cases that all have to be kept, each nearly as large as a case may be, in
// suites in suites with long names.
func adversary(dir, ours string, narration io.Writer) (*contender, error) {
	const cases, body, depth = 70, 3_900_000, 25
	c := &contender{label: "ours, 70 cases of 3.9 MB", argv: []string{ours}, dir: dir}
	path := filepath.Join(dir, fileName(0))
	fmt.Fprintln(narration, "making and pruning:", c.label)
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for range depth {
		fmt.Fprintf(w, `<testsuite name="%s">`, strings.Repeat("n", 32_000))
	}
	line := strings.Repeat("all of <this> & that is kept ", 3) + "\n"
	for i := range cases {
		element := []string{"failure", "error", "system-out", "system-err"}[i%4]
		fmt.Fprintf(w, `<testcase name="%d"><%s><![CDATA[`, i, element)
		for n := 0; n < body; n += len(line) {
			fmt.Fprint(w, line)
		}
		fmt.Fprintf(w, `]]></%s></testcase>`, element)
	}
	fmt.Fprint(w, strings.Repeat("</testsuite>", depth))
	if err := w.Flush(); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	c.bytes = info.Size()
	return c, c.measure(1)
}

func report(out io.Writer, files int, contenders []*contender, large *contender) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "process\tfiles\tbytes\tseconds\tCPU s\tMB/s\tratio\tpeak MB\t")
	row := func(c *contender, files int, ratio string) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.2f\t%.2f\t%.1f\t%s\t%.1f\t\n", c.label, files, c.bytes,
			c.elapsed.Seconds(), c.cpu.Seconds(), c.throughput(), ratio, float64(c.peak)/(1<<20))
	}
	base := contenders[0]
	for _, c := range contenders {
		row(c, files, fmt.Sprintf("%.1f", c.throughput()/base.throughput()))
	}
	row(large, 1, "-")
	if err := w.Flush(); err != nil {
		return err
	}

	missed := false
	verdict := func(ok bool, format string, args ...any) {
		word := "PASS"
		if !ok {
			word, missed = "FAIL", true
		}
		fmt.Fprintf(out, "%s  %s\n", word, fmt.Sprintf(format, args...))
	}
	for _, c := range contenders[1:] {
		ratio := c.throughput() / base.throughput()
		verdict(ratio >= wantRatio, "%s: %.1f times the throughput of prune-junit-xml, want at least %.0f", c.label, ratio, wantRatio)
	}
	for _, c := range append(contenders[1:len(contenders):len(contenders)], large) {
		verdict(c.peak < wantPeak, "%s: peak memory %.1f MB, want below %d", c.label, float64(c.peak)/(1<<20), wantPeak>>20)
	}
	if missed {
		return errMissed
	}
	return nil
}
