package testgrid_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"

	"cloud.google.com/go/storage"
	configpb "github.com/GoogleCloudPlatform/testgrid/pb/config"
	statuspb "github.com/GoogleCloudPlatform/testgrid/pb/test_status"
	"github.com/GoogleCloudPlatform/testgrid/pkg/updater"
	"github.com/GoogleCloudPlatform/testgrid/util/gcs"
	"github.com/sirupsen/logrus"
	"google.golang.org/api/option"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/testgrid"
)

// update lets TestGrid's own updater read a job's builds, and returns the
// columns of the grid that it wrote, the newest first.
func (p *place) update(t *testing.T, job testgrid.Job) []updater.InflatedColumn {
	t.Helper()
	group := &configpb.TestGroup{
		Name: job.Name, GcsPrefix: bucketName + "/" + job.BuildsDir(), DaysOfResults: 14, NumColumnsRecent: 20,
		UseKubernetesClient:    true, //nolint:staticcheck // deprecated, and still what kubernetes/test-infra writes
		DisableProwjobAnalysis: true,
		TestNameConfig: &configpb.TestNameConfig{
			NameElements: []*configpb.TestNameConfig_NameElement{{TargetConfig: "Context"}, {TargetConfig: "Tests name"}},
			NameFormat:   "%s: %s",
		},
		ColumnHeader: []*configpb.TestGroup_ColumnHeader{{ConfigurationValue: "Commit"}, {ConfigurationValue: "kubernetes-version"}, {ConfigurationValue: "windows-version"}, {ConfigurationValue: "verdict"}},
	}
	raw, err := storage.NewClient(t.Context(), option.WithEndpoint(p.endpoint+"/storage/v1/"), option.WithoutAuthentication(), storage.WithJSONReads())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	client := gcs.NewClient(raw)
	path, err := gcs.NewPath("gs://" + bucketName + "/grid/" + job.Name)
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	read := updater.GCS(client, time.Minute, time.Minute, 4, true, updater.SortStarted)
	if _, err := read(t.Context(), log, client, group, *path); err != nil {
		t.Fatalf("TestGrid's updater: %v", err)
	}
	grid, _, err := gcs.DownloadGrid(t.Context(), client, *path)
	if err != nil {
		t.Fatal(err)
	}
	columns, _, err := updater.InflateGrid(context.Background(), grid, time.Time{}, time.Now().Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return columns
}

// show is a column in words: its rows with result, icon and message.
func show(c updater.InflatedColumn) string {
	var rows []string
	for name, cell := range c.Cells {
		if cell.Result == statuspb.TestStatus_NO_RESULT {
			continue
		}
		rows = append(rows, fmt.Sprintf("%s | %s | %s | %s", name, cell.Result, cell.Icon, cell.Message))
	}
	slices.Sort(rows)
	return fmt.Sprintf("%s | %s\n%s\n", c.Column.Build, strings.Join(c.Column.Extra, " | "), strings.Join(rows, "\n"))
}

// wantGrid compares what TestGrid shows with testdata/<name>.txt.
func wantGrid(t *testing.T, name string, columns []updater.InflatedColumn) {
	t.Helper()
	var got strings.Builder
	for i, c := range columns {
		c.Column.Build = fmt.Sprintf("build %d", len(columns)-i)
		got.WriteString(show(c))
	}
	golden.Equal(t, name+".txt", got.String())
}

func TestGridOfEveryOutcome(t *testing.T) {
	p := emulator(t, nil)
	run := aRun{id: "20261121-1", start: start, cases: everyOutcome()}
	plan := planned(t, p.Bucket, periodic, run.write(t))
	publish(t, p.Bucket, plan)
	columns := p.update(t, periodic)
	if len(columns) != 1 || columns[0].Column.Build != plan.Build || int64(columns[0].Column.Started) != start.UnixMilli() {
		t.Fatalf("columns %+v; want build %s", columns, plan.Build)
	}
	wantGrid(t, "grid-every-outcome", columns)
}

func TestGridOfARunThatIsReady(t *testing.T) {
	p := emulator(t, nil)
	run := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a"), passes("net-b")}}
	plan := planned(t, p.Bucket, periodic, run.write(t))
	publish(t, p.Bucket, plan)
	wantGrid(t, "grid-ready", p.update(t, periodic))
}

// A run that only lacks proof has no failing test of Kubernetes, and is not
// shown as passed.
func TestGridOfARunThatWasKilled(t *testing.T) {
	p := emulator(t, nil)
	run := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a"), {id: "net-b"}}, killed: true}
	plan := planned(t, p.Bucket, periodic, run.write(t))
	publish(t, p.Bucket, plan)
	wantGrid(t, "grid-killed", p.update(t, periodic))
}

// A column that was started shows as running, and then as what it came to,
// also where TestGrid has looked in between.
func TestGridFollowsABuildThatWasStarted(t *testing.T) {
	p := emulator(t, nil)
	begun := time.Now().Add(-time.Minute)
	build, err := testgrid.BuildID(begun, "x")
	if err != nil {
		t.Fatal(err)
	}
	o := &testgrid.Options{Job: periodic, Build: build, URL: p.URL}
	first, err := testgrid.PlanStart(o, testgrid.NewStarted(&periodic, begun, ""))
	if err != nil {
		t.Fatal(err)
	}
	publish(t, p.Bucket, first)
	wantGrid(t, "grid-started", p.update(t, periodic))
	run := aRun{id: "20261121-1", start: begun.Add(time.Second), cases: []aCase{passes("net-a")}}
	dir := run.write(t)
	publisher := testgrid.Publisher{Bucket: p.Bucket}
	found, err := publisher.Find(t.Context(), &periodic, resultsIn(t, dir), time.Now())
	if err != nil || found != build {
		t.Fatalf("found %q, %v; want %s", found, err, build)
	}
	second, err := planOf(t, p.Bucket, periodic, build, dir)
	if err != nil {
		t.Fatal(err)
	}
	before, err := p.ReadAll(t.Context(), first.Dir+"started.json", 1000)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, p.Bucket, second)
	if after, err := p.ReadAll(t.Context(), first.Dir+"started.json", 1000); err != nil || string(after) != string(before) {
		t.Errorf("started.json was %s and is %s, %v", before, after, err)
	}
	wantGrid(t, "grid-finished", p.update(t, periodic))
}

// TestGrid finds the builds of a presubmit through their aliases, whichever way
// paths are made.
func TestGridFindsPresubmits(t *testing.T) {
	for _, strategy := range []string{testgrid.StrategyExplicit, testgrid.StrategyLegacy, testgrid.StrategySingle} {
		t.Run(strategy, func(t *testing.T) {
			p := emulator(t, nil)
			job := presubmit
			job.Strategy = strategy
			run := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a")}}
			plan := planned(t, p.Bucket, job, run.write(t))
			publish(t, p.Bucket, plan)
			wantGrid(t, "grid-presubmit", p.update(t, job))
		})
	}
}

// Shards are one build, judged as a whole: a test that failed in a shard's
// first attempt, and passed in its second, is flaky.
func TestGridOfShards(t *testing.T) {
	p := emulator(t, nil)
	run := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a"), fails("net-b"), passes("net-c")}, shards: 2}
	one := run.write(t)
	run.shard = 2
	two := run.write(t)
	run.attempt, run.start, run.cases[1] = 2, start.Add(time.Hour), passes("net-b")
	again := run.write(t)
	plan := planned(t, p.Bucket, periodic, two, one, again)
	if want, err := testgrid.BuildID(run.start, run.id); err != nil || plan.Build != want {
		t.Errorf("build %s, want that of the newest attempt: %s, %v", plan.Build, want, err)
	}
	publish(t, p.Bucket, plan)
	for _, name := range []string{"shard-1/junit_core-network_01.xml", "shard-2/junit_core-network_01.xml", "shard-2-attempt-1/results.jsonl", "shard-2-attempt-2/results.jsonl"} {
		if !has(p.keys(t), name) {
			t.Errorf("%s is missing", name)
		}
	}
	wantGrid(t, "grid-shards", p.update(t, periodic))
	// Without its shards the run proves nothing of them.
	p = emulator(t, nil)
	if plan, err := planOf(t, p.Bucket, periodic, "", one, two); err != nil {
		t.Error(err)
	} else {
		publish(t, p.Bucket, plan)
		wantGrid(t, "grid-shards-first-attempts", p.update(t, periodic))
	}
}

// What 'merge' made of shards and attempts is the same build as they are
// themselves, and shows the same.
func TestGridOfMergedShards(t *testing.T) {
	run := aRun{id: "20261121-1", start: start, cases: []aCase{passes("net-a"), fails("net-b"), passes("net-c")}, shards: 2}
	one := run.write(t)
	run.shard = 2
	two := run.write(t)
	run.attempt, run.start, run.cases[1] = 2, start.Add(time.Hour), passes("net-b")
	again := run.write(t)
	whole, err := result.Load(one, two, again)
	if err != nil {
		t.Fatal(err)
	}
	merged := filepath.Join(t.TempDir(), "merged")
	folder, err := whole.Save(merged)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(report.WriteFolder(folder, whole, verdict.Judge(whole), run.start.Add(time.Hour)), folder.Close()); err != nil {
		t.Fatal(err)
	}
	var ids, finished []string
	for _, dirs := range [][]string{{one, two, again}, {merged}} {
		p := emulator(t, nil)
		plan := planned(t, p.Bucket, periodic, dirs...)
		publish(t, p.Bucket, plan)
		ids, finished = append(ids, plan.Build), append(finished, content(t, p.Bucket, plan.Dir+"finished.json"))
		wantGrid(t, "grid-shards", p.update(t, periodic))
		for _, s := range plan.Skipped {
			t.Errorf("%s is left out: %s", s.File, s.Reason)
		}
		logs := 0
		for _, key := range p.keys(t) {
			if strings.HasSuffix(key, "batch-01.log") {
				logs++
			}
		}
		if logs != 3 {
			t.Errorf("%d logs of three attempts", logs)
		}
	}
	if ids[0] != ids[1] || finished[0] != finished[1] {
		t.Errorf("the folders are build %s, and merged they are %s; finished.json is\n%s\nand\n%s", ids[0], ids[1], finished[0], finished[1])
	}
}

// The second attempt at an old run comes after the first one of a newer run.
func TestGridTakesAttemptsInTheirOrder(t *testing.T) {
	p := emulator(t, nil)
	old := aRun{id: "old", start: start, cases: []aCase{fails("net-a")}}
	recent := aRun{id: "recent", start: start.Add(time.Minute), cases: []aCase{passes("net-a")}}
	var want []string
	for _, run := range []aRun{old, recent, {id: old.id, start: start.Add(time.Hour), attempt: 2, cases: []aCase{passes("net-a")}}} {
		plan := planned(t, p.Bucket, periodic, run.write(t))
		publish(t, p.Bucket, plan)
		want = append([]string{plan.Build}, want...)
		var got []string
		for _, c := range p.update(t, periodic) {
			got = append(got, c.Column.Build)
		}
		if !slices.Equal(got, want) {
			t.Errorf("TestGrid has %q, want %q", got, want)
		}
	}
	if latest, err := p.ReadAll(t.Context(), "logs/windows-readiness/latest-build.txt", 100); err != nil || string(latest) != want[0] {
		t.Errorf("latest-build.txt is %q, %v; want %s", latest, err, want[0])
	}
}

// What hostile files in a results folder would have shown is not shown.
func TestGridIgnoresJUnitThatIsNotOfTheResults(t *testing.T) {
	p := emulator(t, nil)
	dir := aRun{id: "20261121-1", start: start, cases: []aCase{fails("net-a")}}.write(t)
	fake := `<testsuites><testsuite name="x"><testcase name="net-a [sig-network] net-a should work [Conformance]"/></testsuite></testsuites>`
	for _, name := range []string{"junit_core-network_01.xml", "junit_evil_01.xml", "logs/junit_evil_02.xml", "logs/junit.xml", "artifacts/junit_evil_03.xml", "started.json", "finished.json"} {
		writeFile(t, dir+"/"+name, fake)
	}
	writeFile(t, dir+"/junit_utf16_01.xml", "\xff\xfe<\x00")
	writeFile(t, dir+"/junit_control_01.xml", "<testsuites>\x01")
	writeFile(t, dir+"/junit_large_01.xml", fake+strings.Repeat(" ", 1<<20))
	plan := planned(t, p.Bucket, periodic, dir)
	publish(t, p.Bucket, plan)
	wantGrid(t, "grid-hostile", p.update(t, periodic))
}
