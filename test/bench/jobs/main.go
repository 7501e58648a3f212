// Command jobs measures how fast a thousand Prow jobs are rendered, beside what
// Prow's strict loader takes to read them.
//
// Usage, from the root of the repository:
//
//	go run ./test/bench/jobs
//
// It writes an op-readiness.yaml with about a thousand cells and the presubmits
// of all categories for each profile, reads it, renders it, and loads the result with Prow's own LoadStrict. Each number is the best of
// five. It exits with 1 when the target is missed, 2 when it could not measure.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	prowconfig "sigs.k8s.io/prow/pkg/config"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/jobs"
)

const (
	wantJobs = 1000
	// want is the most that reading the configuration and rendering it may take.
	want = time.Second
	runs = 5
)

var errMissed = errors.New("a target is missed")

// prow is a Prow's configuration, as far as jobs need one.
const prow = `plank:
  default_decoration_config_entries:
    - config:
        timeout: 2h
        grace_period: 15m
        utility_images: {clonerefs: clonerefs, initupload: initupload, entrypoint: entrypoint, sidecar: sidecar}
        gcs_configuration: {bucket: bucket, path_strategy: explicit}
        gcs_credentials_secret: gcs
`

func main() {
	switch err := run(os.Stdout); {
	case errors.Is(err, errMissed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
}

func run(w io.Writer) error {
	dir, err := os.MkdirTemp("", "bench-jobs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "profile\tjobs\tKB\tread\trender\tboth\tProw's strict loader\tloader / both\t")
	var worst time.Duration
	for _, profile := range []string{config.ProfilePlain, config.ProfileCAPZ} {
		m, err := measure(filepath.Join(dir, profile), profile)
		if err != nil {
			return err
		}
		both := m.read + m.render
		worst = max(worst, both)
		fmt.Fprintf(out, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%.1f\t\n", profile, m.jobs, m.size/1024, ms(m.read), ms(m.render), ms(both), ms(m.load), float64(m.load)/float64(both))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if worst > want {
		fmt.Fprintf(w, "FAIL: a thousand jobs take %s to render, and may take %s\n", ms(worst), want)
		return errMissed
	}
	fmt.Fprintf(w, "PASS: a thousand jobs take at most %s to render, and may take %s\n", ms(worst), want)
	return nil
}

type measurement struct {
	jobs, size         int
	read, render, load time.Duration
}

func measure(dir, profile string) (measurement, error) {
	m := measurement{}
	text := []byte(matrix(profile))
	folder := filepath.Join(dir, "jobs")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return m, err
	}
	main := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(main, []byte(prow), 0o644); err != nil {
		return m, err
	}
	for range runs {
		start := time.Now()
		c, err := config.Parse("op-readiness.yaml", text)
		if err != nil {
			return m, err
		}
		m.read = best(m.read, time.Since(start))
		start = time.Now()
		files, err := jobs.Render(c)
		if err != nil {
			return m, err
		}
		m.render = best(m.render, time.Since(start))
		m.jobs, m.size = len(c.Jobs()), 0
		for _, f := range files {
			m.size += len(f.Data)
			if f.Data == nil {
				continue
			}
			if err := os.WriteFile(filepath.Join(folder, f.Name), f.Data, 0o644); err != nil {
				return m, err
			}
		}
		start = time.Now()
		loaded, err := prowconfig.LoadStrict(main, folder, nil, "")
		if err != nil {
			return m, fmt.Errorf("loading the jobs with Prow: %w", err)
		}
		m.load = best(m.load, time.Since(start))
		if n := len(loaded.AllPeriodics()) + len(loaded.AllStaticPresubmits(nil)); n != m.jobs || n < wantJobs {
			return m, fmt.Errorf("loading the jobs with Prow: %d of %d are there, want at least %d", n, m.jobs, wantJobs)
		}
	}
	return m, nil
}

// matrix is a configuration of about a thousand cells: branches of Kubernetes,
// three releases of Windows, two isolations, and what else a profile lets
// differ.
func matrix(profile string) string {
	count, axis := 33, "cni: [calico, flannel, cilium, antrea, ovn]"
	if profile == config.ProfileCAPZ {
		count, axis = 42, "runtime: [containerd, containerd-1.7, containerd-2.0, containerd-nightly]"
	}
	branches := []string{"master"}
	for minor := 4; len(branches) < count; minor++ {
		branches = append(branches, fmt.Sprintf("release-1.%d", minor))
	}
	return fmt.Sprintf(`repository: example/cni
matrix:
  kubernetes: [%s]
  windows: ["2019", "2022", "2025"]
  isolation: [process, hyperv]
  %s
prow: {profile: %s, image: registry.example.com/op-readiness:v1, kubeconfigSecret: "kubeconfig-{cell}"}
`, strings.Join(branches, ", "), axis, profile)
}

func best(a, b time.Duration) time.Duration {
	if a == 0 || b < a {
		return b
	}
	return a
}

func ms(d time.Duration) string { return d.Round(time.Millisecond).String() }
