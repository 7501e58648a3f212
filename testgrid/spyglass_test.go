package testgrid_test

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/storage"
	"github.com/sirupsen/logrus"
	"google.golang.org/api/option"
	"sigs.k8s.io/prow/pkg/config"
	"sigs.k8s.io/prow/pkg/deck/jobs"
	pkgio "sigs.k8s.io/prow/pkg/io"
	"sigs.k8s.io/prow/pkg/spyglass"
	"sigs.k8s.io/prow/pkg/spyglass/api"

	"github.com/windows-op-readiness/windows-op-readiness/testgrid"
)

// Prow's own Spyglass finds a build, also through its alias, and reads what is
// in it, compressed or not.
func TestSpyglassReadsBuilds(t *testing.T) {
	logrus.SetOutput(io.Discard) // Prow's code narrates
	p := emulator(t, nil)
	raw, err := storage.NewClient(t.Context(), option.WithEndpoint(p.endpoint+"/storage/v1/"), option.WithoutAuthentication(), storage.WithJSONReads())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	skip := true
	cfg := func() *config.Config {
		return &config.Config{ProwConfig: config.ProwConfig{Deck: config.Deck{SkipStoragePathValidation: &skip}}}
	}
	deck := spyglass.New(t.Context(), &jobs.JobAgent{}, cfg, pkgio.NewGCSOpener(raw), false)
	dir := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a"), fails("net-b")}}.write(t)
	for _, job := range []testgrid.Job{periodic, presubmit} {
		plan := planned(t, p.Bucket, job, dir)
		publish(t, p.Bucket, plan)
		source := "gs/" + bucketName + "/" + job.BuildDir(plan.Build)
		if alias := job.Alias(plan.Build); alias != "" {
			found, err := deck.ResolveSymlink("gs/" + bucketName + "/" + strings.TrimSuffix(alias, ".txt"))
			if err != nil || found != source {
				t.Errorf("the alias leads to %q, %v; want %s", found, err, source)
			}
		}
		names, err := deck.ListArtifacts(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		junit := regexp.MustCompile(`^artifacts(/.*/|/)junit.*\.xml$`) // Spyglass's lens, as everybody configures it
		links := regexp.MustCompile(`^artifacts/.*\.link\.txt$`)
		for _, want := range []*regexp.Regexp{junit, links, regexp.MustCompile(`^build-log\.txt$`), regexp.MustCompile(`^finished\.json$`)} {
			if !slices.ContainsFunc(names, want.MatchString) {
				t.Errorf("Spyglass finds nothing for %s among %q", want, names)
			}
		}
		artifacts, err := deck.FetchArtifacts(t.Context(), source, "", 1<<20, names)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range artifacts {
			data, err := a.ReadAll()
			if err != nil {
				t.Errorf("%s: %v", a.JobPath(), err)
			}
			for name, text := range map[string]string{"build-log.txt": "the report", "batch-01.log": "what e2e.test said", ".link.txt": "https://ci.example/1", "plan.json": `"digest"`} {
				if strings.HasSuffix(a.JobPath(), name) && !strings.Contains(string(data), text) {
					t.Errorf("%s holds %.40q, which lacks %q", a.JobPath(), data, text)
				}
			}
		}
		// Deck shows the end of a log, and asks for it alone.
		log := slices.IndexFunc(artifacts, func(a api.Artifact) bool { return a.JobPath() == "build-log.txt" })
		if tail, err := artifacts[log].ReadTail(7); err != nil || string(tail) != "report\n" {
			t.Errorf("the tail of the build log is %q, %v", tail, err)
		}
	}
}
