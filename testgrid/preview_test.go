package testgrid_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid"
)

// inWords is a tab as wantGrid has it.
func inWords(t *grid.Tab) string {
	var out strings.Builder
	for i, c := range t.Columns {
		var rows []string
		for _, r := range t.Rows {
			if cell := r.Cells[i]; cell.Result != grid.NoResult {
				rows = append(rows, fmt.Sprintf("%s | %s | %s | %s", r.Name, cell.Result, cell.Icon, cell.Message))
			}
		}
		slices.Sort(rows)
		fmt.Fprintf(&out, "build %d | %s\n%s\n", len(t.Columns)-i, strings.Join(c.Headers, " | "), strings.Join(rows, "\n"))
	}
	return out.String()
}

func previewOf(t *testing.T, source *grid.Source) *grid.Tab {
	t.Helper()
	t.Cleanup(func() { source.Close() })
	prefixes, err := grid.Find(t.Context(), source.Client, source.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	p, err := grid.Make(t.Context(), source.Client, grid.Standard(14, prefixes...), grid.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Tabs()) != 1 {
		t.Fatalf("%d tabs", len(p.Tabs()))
	}
	return p.Tabs()[0]
}

// A preview shows what TestGrid shows of the same run in a bucket: from its
// results folder, from the bucket, and from a folder that was published into.
func TestPreviewOfEveryOutcome(t *testing.T) {
	run := aRun{id: "20261121-1", start: start, cases: everyOutcome()}
	dir := run.write(t)
	t.Run("results", func(t *testing.T) {
		source, err := grid.OpenResults(dir, []string{dir}, periodic.Name)
		if err != nil {
			t.Fatal(err)
		}
		tab := previewOf(t, source)
		// The commit is what publish is told; a results folder does not know it.
		golden.Equal(t, "grid-every-outcome.txt", strings.Replace(inWords(tab), "| missing |", "| 0123456789abcdef |", 1))
		if tab.Status != "FLAKY" || !strings.HasPrefix(tab.Message, "0 of 1 (0.0%) recent columns passed") {
			t.Errorf("the summarizer says %s: %s", tab.Status, tab.Message)
		}
	})
	t.Run("bucket", func(t *testing.T) {
		p := emulator(t, nil)
		publish(t, p.Bucket, planned(t, p.Bucket, periodic, dir))
		source, err := grid.Open(t.Context(), "gs://"+bucketName, bucket.Options{Endpoint: p.endpoint})
		if err != nil {
			t.Fatal(err)
		}
		golden.Equal(t, "grid-every-outcome.txt", inWords(previewOf(t, source)))
	})
	t.Run("folder", func(t *testing.T) {
		folder := t.TempDir()
		url, err := bucket.FileURL(folder)
		if err != nil {
			t.Fatal(err)
		}
		b, err := bucket.Open(t.Context(), url, bucket.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		publish(t, b, planned(t, b, periodic, dir))
		for _, name := range []string{folder, url, folder + "/logs", folder + "/logs/" + periodic.Name} {
			source, err := grid.Open(t.Context(), name, bucket.Options{})
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, "grid-every-outcome.txt", inWords(previewOf(t, source)))
		}
	})
}

// Builds of pull requests are found through their aliases, in every kind of
// bucket, also below a prefix.
func TestPreviewOfAPresubmit(t *testing.T) {
	job := periodic
	job.Type, job.Org, job.Repo, job.Pull = "presubmit", "kubernetes", "kubernetes", 123
	run := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a")}}
	dir := run.write(t)
	p := emulator(t, nil)
	below, err := bucket.Open(t.Context(), "gs://"+bucketName+"/some/prefix", bucket.Options{Endpoint: p.endpoint})
	if err != nil {
		t.Fatal(err)
	}
	defer below.Close()
	folder := t.TempDir()
	url, err := bucket.FileURL(folder)
	if err != nil {
		t.Fatal(err)
	}
	local, err := bucket.Open(t.Context(), url, bucket.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	for _, b := range []*bucket.Bucket{below, local} {
		publish(t, b, planned(t, b, job, dir))
	}
	for _, name := range []string{"gs://" + bucketName + "/some/prefix", url, folder + "/pr-logs/directory/" + job.Name} {
		source, err := grid.Open(t.Context(), name, bucket.Options{Endpoint: p.endpoint})
		if err != nil {
			t.Fatal(err)
		}
		tab := previewOf(t, source)
		if got := inWords(tab); !strings.Contains(got, "core-network: net-a [sig-network] net-a should work [Conformance] | PASS |") || tab.Columns[0].Build == "" {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}
