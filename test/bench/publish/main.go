//go:build linux || darwin

// Command publish measures how fast 'op-readiness publish' is, and how much
// memory it takes.
//
// Usage, from the root of the repository:
//
//	go run ./test/bench/publish
//
// It makes the results folders of a run of 10 shards with 50 JUnit files and
// 500 logs in all, and publishes them to a GCS emulator that answers each
// request 20 ms late: with op-readiness, and with Google's own client, one
// upload after the other. Then it publishes logs that are 10 times as large,
// and compares the peaks of resident memory. What arrived is checked. It exits
// with 1 when a target is missed, 2 when it could not measure.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/bench/target"

	"cloud.google.com/go/storage"
	"github.com/fsouza/fake-gcs-server/fakestorage"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/report"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
	"github.com/windows-op-readiness/windows-op-readiness/test/recorded"
)

// The targets.
const (
	wantRatio  = 5.0 // times as fast as one upload after the other
	wantGrowth = 1.5 // times the memory, at most, for logs of 10 times the size
)

const (
	shards  = 10
	logs    = 50 // a shard
	latency = 20 * time.Millisecond
	bucket  = "readiness"
	job     = "windows-readiness"
)

// categories times shards are 50 JUnit files.
var categories = []specs.Category{specs.CoreNetwork, specs.CoreStorage, specs.CoreScheduling, specs.CoreConcurrent, specs.ExtendWorker}

func main() {
	rounds := flag.Int("rounds", 3, "how often to measure; the best of each counts")
	emulate := flag.Bool("emulate", false, "be the emulator, and print its URL")
	size := flag.Int("log", 100<<10, "bytes of a log; ten times as much for the comparison of memory")
	flag.Parse()
	if *emulate {
		if err := emulator(); err != nil {
			fmt.Fprintln(os.Stderr, "bench: emulator:", err)
			os.Exit(2)
		}
		return
	}
	target.Exit(run(max(1, *rounds), *size, os.Stdout, os.Stderr))
}

func run(rounds, size int, out, narration io.Writer) error {
	dir, err := os.MkdirTemp("", "bench-publish-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "op-readiness")
	fmt.Fprintln(narration, "building op-readiness")
	if said, err := exec.Command("go", "build", "-o", binary, "./cmd/op-readiness").CombinedOutput(); err != nil {
		return fmt.Errorf("building op-readiness: %w\n%s", err, said)
	}
	small, large := filepath.Join(dir, "small"), filepath.Join(dir, "large")
	if err := errors.Join(makeRun(small, size), makeRun(large, 10*size)); err != nil {
		return err
	}
	var ours, theirs time.Duration
	var peaks [2]int64
	for round := range rounds {
		fmt.Fprintf(narration, "round %d of %d\n", round+1, rounds)
		published, peak, objects, err := publish(binary, small)
		if err != nil {
			return err
		}
		one, err := oneByOne(small, objects)
		if err != nil {
			return err
		}
		_, tenfold, _, err := publish(binary, large)
		if err != nil {
			return err
		}
		if round == 0 {
			ours, theirs, peaks = published, one, [2]int64{peak, tenfold}
		}
		ours, theirs = min(ours, published), min(theirs, one)
		peaks = [2]int64{min(peaks[0], peak), min(peaks[1], tenfold)}
	}
	ratio, growth := theirs.Seconds()/ours.Seconds(), float64(peaks[1])/float64(peaks[0])
	fmt.Fprintf(out, "publish, 50 JUnit files and 500 logs, %s a request:\n", latency)
	fmt.Fprintf(out, "  op-readiness publish          %6.2f s\n", ours.Seconds())
	fmt.Fprintf(out, "  one upload after the other    %6.2f s\n", theirs.Seconds())
	fmt.Fprintf(out, "  times as fast                 %6.1f   (target %.0f)\n", ratio, wantRatio)
	fmt.Fprintf(out, "  peak memory, logs of %4d KiB %6.1f MiB\n", size>>10, float64(peaks[0])/(1<<20))
	fmt.Fprintf(out, "  peak memory, logs of %4d KiB %6.1f MiB\n", size*10>>10, float64(peaks[1])/(1<<20))
	fmt.Fprintf(out, "  growth                        %6.2f   (target at most %.1f)\n", growth, wantGrowth)
	if ratio < wantRatio || growth > wantGrowth {
		return target.ErrMissed
	}
	return nil
}

// emulator is a GCS emulator that answers late, until its standard input ends.
func emulator() error {
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true})
	if err != nil {
		return err
	}
	server.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: bucket})
	handler := server.HTTPHandler()
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(latency)
		handler.ServeHTTP(w, r)
	}))
	defer listener.Close()
	fmt.Println(listener.URL)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startEmulator starts an emulator in a process of its own: the peak of memory
// of a child is at least what its parent had, and the emulator keeps what it is
// sent.
func startEmulator() (url string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self, "-emulate")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		in.Close()
		_ = cmd.Wait() // how it ends tells nothing
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("starting the emulator: %w", err)
	}
	return strings.TrimSpace(line), stop, nil
}

// publish publishes a run as a user does, and returns how long that took, the
// peak of memory in bytes, and how many objects there are then.
func publish(binary, dir string) (time.Duration, int64, int, error) {
	url, stop, err := startEmulator()
	if err != nil {
		return 0, 0, 0, err
	}
	defer stop()
	cmd := exec.Command(binary, "publish", dir, "--bucket", "gs://"+bucket, "--job", job, "--endpoint", url)
	var said bytes.Buffer
	cmd.Stderr = &said
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, 0, 0, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, said.Bytes())
	}
	took := time.Since(begin)
	peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	if runtime.GOOS == "linux" {
		peak <<= 10 // kilobytes there, bytes on a Mac
	}
	objects, err := count(url)
	return took, peak, objects, err
}

func client(endpoint string) (*storage.Client, error) {
	return storage.NewClient(context.Background(), option.WithEndpoint(endpoint+"/storage/v1/"), option.WithoutAuthentication(), storage.WithJSONReads())
}

// count counts the JUnit files and logs of a bucket, which must all be there.
func count(endpoint string) (int, error) {
	c, err := client(endpoint)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	var all, junit, log, finished int
	for it := c.Bucket(bucket).Objects(context.Background(), nil); ; all++ {
		o, err := it.Next()
		if errors.Is(err, iterator.Done) {
			break
		}
		if err != nil {
			return 0, err
		}
		switch name := filepath.Base(o.Name); {
		case strings.HasPrefix(name, "junit_"):
			junit++
		case strings.HasSuffix(name, ".log"):
			log++
		case name == "finished.json":
			finished++
		}
	}
	if junit != shards*len(categories) || log != shards*logs || finished != 1 {
		return 0, fmt.Errorf("the bucket has %d JUnit files, %d logs and %d finished.json", junit, log, finished)
	}
	return all, nil
}

// oneByOne uploads the files of a run with Google's client, as a loop would,
// and as many small objects as a build has beside them.
func oneByOne(dir string, objects int) (time.Duration, error) {
	url, stop, err := startEmulator()
	if err != nil {
		return 0, err
	}
	defer stop()
	c, err := client(url)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	upload := func(name string, content io.Reader) error {
		w := c.Bucket(bucket).Object(name).NewWriter(context.Background())
		_, err := io.Copy(w, content)
		return errors.Join(err, w.Close())
	}
	begin := time.Now()
	sent := 0
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || entry.Name() == ".lock" {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		sent++
		return upload(path, file)
	})
	for ; err == nil && sent < objects; sent++ {
		err = upload(fmt.Sprint("small ", sent), strings.NewReader("small"))
	}
	if err == nil && sent != objects {
		err = fmt.Errorf("%d objects were uploaded one by one, and %d published", sent, objects)
	}
	return time.Since(begin), err
}

// makeRun makes the results folders of all shards.
func makeRun(dir string, size int) error {
	plan := &result.Plan{Schema: result.PlanSchema, KubernetesVersion: "v1.36.3", Provider: "skeleton", Shards: shards, Standard: map[specs.Category]int{}}
	for shard := 1; shard <= shards; shard++ {
		for _, category := range categories {
			for n := range 10 {
				id := fmt.Sprintf("%s-%d-%d", report.Context(category), shard, n)
				test := result.PlannedTest{Name: "[sig-x] " + id, Phase: specs.Parallel, Duration: time.Minute, Timeout: time.Hour, Cases: []string{id}, Shard: shard}
				test.ID = result.TestID(test.Name, test.Conditions)
				plan.Standard[category]++
				plan.Tests = append(plan.Tests, test)
				plan.Cases = append(plan.Cases, result.PlannedCase{
					Case:    specs.Case{ID: id, Category: category, Kind: specs.Requirement, Proof: specs.ProofFull, Requirement: "Ability to do " + id + "."},
					TestIDs: []string{test.ID}, Shard: shard,
				})
			}
		}
	}
	var err error
	if plan.Digest, err = plan.ComputeDigest(); err != nil {
		return err
	}
	for shard := 1; shard <= shards; shard++ {
		if err := makeShard(filepath.Join(dir, fmt.Sprint("shard-", shard)), plan, shard, size); err != nil {
			return err
		}
	}
	return nil
}

func makeShard(dir string, plan *result.Plan, shard, size int) error {
	began := time.Now().Add(-time.Hour)
	folder, err := result.Create(dir, plan, &result.Manifest{
		Schema: result.ManifestSchema, RunID: "bench", PlanDigest: plan.Digest, Shard: shard, Attempt: 1, E2EVersion: "v1.36.3", Started: began,
		Cluster: result.Facts{ServerVersion: "v1.36.3", Nodes: []result.Node{{Name: "w", OS: specs.Windows, Ready: true, WindowsBuild: "10.0.20348"}}},
	})
	if err != nil {
		return err
	}
	defer folder.Close()
	events := recorded.Execution(plan, shard, began, nil, func(*result.PlannedTest) []recorded.Try {
		return []recorded.Try{{TestRun: result.TestRun{State: result.TestPassed, Seconds: 1}}}
	})
	if err := folder.Append(events...); err != nil {
		return err
	}
	var log bytes.Buffer
	for n := 0; log.Len() < size; n++ {
		fmt.Fprintf(&log, "I1121 09:%02d:%02d.%06d e2e.test: pod %x of namespace %x is running and ready\n", n/60%60, n%60, n*7919%1_000_000, n*2654435761, n*40503)
	}
	for n := range logs {
		if err := folder.WriteFile(fmt.Sprintf("%s/batch-%02d.log", result.LogsDir, n), log.Bytes()); err != nil {
			return err
		}
	}
	done, err := result.Load(dir)
	if err != nil {
		return err
	}
	return report.WriteFolder(folder, done, verdict.Judge(done), began.Add(time.Hour/2))
}
