//go:build unix

package binaries_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
)

// apiServer is where the fake release publishes kube-apiserver.
func apiServer() string {
	return fmt.Sprintf("/k8s/release/v1.36.3/bin/%s/%s/kube-apiserver", runtime.GOOS, runtime.GOARCH)
}

func testTarball() string {
	return fmt.Sprintf("/k8s/release/v1.36.3/kubernetes-test-%s-%s.tar.gz", runtime.GOOS, runtime.GOARCH)
}

func TestDownloadedOnceThenFromCache(t *testing.T) {
	b := newBench(t)
	want := program("kube-apiserver", "v1.36.3")
	b.publish(apiServer(), want)

	path := b.get(binaries.APIServer)[binaries.APIServer]
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("content %q, want %q", got, want)
	}
	asked := b.asked()
	if again := b.get(binaries.APIServer)[binaries.APIServer]; again != path {
		t.Errorf("second path %s, want %s", again, path)
	}
	if diff := cmp.Diff(asked, b.asked()); diff != "" {
		t.Errorf("requests of the second Get:\n%s", diff)
	}
	if builds := b.builds(); len(builds) > 0 {
		t.Errorf("built %q although the release has it", builds)
	}
}

func TestTestTarballIsDownloadedOnceForBothOfItsBinaries(t *testing.T) {
	b := newBench(t)
	b.publish(testTarball(), tarball(t, map[string][]byte{
		"kubernetes/test/bin/e2e.test": program("e2e.test", "v1.36.3"),
		"kubernetes/test/bin/ginkgo":   program("ginkgo", ""),
		"kubernetes/test/bin/other":    []byte("not wanted"),
	}))
	b.get(binaries.E2ETest, binaries.Ginkgo)
	if diff := cmp.Diff([]string{testTarball() + ".sha256", testTarball()}, b.asked()); diff != "" {
		t.Errorf("requests:\n%s", diff)
	}
	want := []string{"e2e.test", "e2e.test.manifest.json", "ginkgo", "ginkgo.manifest.json"}
	if diff := cmp.Diff(want, b.inCache()); diff != "" {
		t.Errorf("cache:\n%s", diff)
	}
}

func TestEtcdIsTheOneThatKubernetesRequires(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("etcd's archive is a zip elsewhere")
	}
	b := newBench(t)
	stem := "etcd-v3.6.8-linux-" + runtime.GOARCH
	packed := tarball(t, map[string][]byte{stem + "/etcd": program("etcd", "")})
	b.serve("/etcd/v3.6.8/"+stem+".tar.gz", packed)
	b.serve("/etcd/v3.6.8/SHA256SUMS", []byte(strings.Repeat("0", 64)+"  other.tar.gz\n"+sum(packed)+"  "+stem+".tar.gz\n"))
	b.get(binaries.Etcd)
	if builds := b.builds(); len(builds) > 0 {
		t.Errorf("built %q although the release has it", builds)
	}
}

func TestSHA512WhereThereIsNoSHA256(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Release
	b.serve(apiServer(), program("kube-apiserver", "v1.36.3"))
	b.serve(apiServer()+".sha512", []byte(strings.Repeat("0", 128)+"\n"))
	_, err := b.Get(context.Background(), "v1.36.3", binaries.APIServer)
	var checksum *binaries.ChecksumError
	if !errors.As(err, &checksum) {
		t.Fatalf("error %v, want a ChecksumError of the SHA-512", err)
	}
}

func TestWrongChecksumIsAnErrorAndNothingIsBuiltInstead(t *testing.T) {
	b := newBench(t)
	b.publish(apiServer(), program("kube-apiserver", "v1.36.3"))
	b.serve(apiServer()+".sha256", []byte(sum([]byte("something else"))))

	_, err := b.Get(context.Background(), "v1.36.3", binaries.APIServer)
	var checksum *binaries.ChecksumError
	if !errors.As(err, &checksum) {
		t.Fatalf("error %v, want a ChecksumError", err)
	}
	contains(t, err.Error(), b.server.URL+apiServer(), checksum.Expected, checksum.Found, "--source build")
	if builds := b.builds(); len(builds) > 0 {
		t.Errorf("fell back to building: %q", builds)
	}
	if left := b.inCache(); len(left) > 0 {
		t.Errorf("left in the cache: %q", left)
	}
}

// What an unreachable or incomplete release looks like.
func troubles() map[string]struct {
	arrange func(*bench)
	told    string
} {
	content := program("kube-apiserver", "v1.36.3")
	return map[string]struct {
		arrange func(*bench)
		told    string
	}{
		"not published": {func(b *bench) {}, "not published for " + runtime.GOOS},
		"no checksum published": {
			func(b *bench) { b.serve(apiServer(), content) }, "not published for " + runtime.GOOS},
		"server fails": {func(b *bench) {
			b.handle(apiServer()+".sha256", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
		}, "500 Internal Server Error"},
		"nobody listens": {func(b *bench) { b.KubernetesURL = "http://127.0.0.1:1" }, "connection refused"},
		"server hangs": {func(b *bench) {
			b.ProbeTimeout = 50 * time.Millisecond
			b.handle(apiServer()+".sha256", hang)
		}, "no answer within 50ms"},
		"download hangs": {func(b *bench) {
			b.StallTimeout = 50 * time.Millisecond
			b.publish(apiServer(), content)
			b.handle(apiServer(), func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "1000000")
				send(w, []byte("a little"))
				w.(http.Flusher).Flush()
				hang(w, r)
			})
		}, "nothing arrived for 50ms"},
		"body is cut short": {func(b *bench) {
			b.publish(apiServer(), content)
			b.handle(apiServer(), func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", fmt.Sprint(len(content)))
				send(w, content[:10])
			})
		}, io.ErrUnexpectedEOF.Error()},
	}
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func TestReleaseInTroubleLeadsToBuildingAndSaysSo(t *testing.T) {
	for name, trouble := range troubles() {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			trouble.arrange(b)
			b.get(binaries.APIServer)
			if builds := b.builds(); len(builds) != 1 {
				t.Errorf("%d builds, want 1", len(builds))
			}
			contains(t, b.told.String(), trouble.told, "building kube-apiserver from Go modules instead")
		})
	}
}

func TestReleaseInTroubleIsAnErrorWhenOnlyTheReleaseWillDo(t *testing.T) {
	for name, trouble := range troubles() {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.Source = binaries.Release
			trouble.arrange(b)
			_, err := b.Get(context.Background(), "v1.36.3", binaries.APIServer)
			if err == nil {
				t.Fatal("no error")
			}
			contains(t, err.Error(), "kube-apiserver", "--source build")
			if builds := b.builds(); len(builds) > 0 {
				t.Errorf("built although only the release was wanted: %q", builds)
			}
			if left := b.inCache(); len(left) > 0 {
				t.Errorf("left in the cache: %q", left)
			}
		})
	}
}

func TestDownloadThatBreaksOnceIsTriedAgain(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Release
	content := program("kube-apiserver", "v1.36.3")
	b.publish(apiServer(), content)
	broken := false
	b.handle(apiServer(), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		if !broken {
			broken = true
			send(w, content[:10])
			return
		}
		send(w, content)
	})
	b.get(binaries.APIServer)
}

func TestOnlyWhatIsNotPublishedIsBuilt(t *testing.T) {
	b := newBench(t)
	b.publish(apiServer(), program("kube-apiserver", "v1.36.3"))
	b.get(binaries.APIServer, binaries.Scheduler)
	builds := b.builds()
	if len(builds) != 1 || strings.Contains(builds[0], "kube-apiserver") || !strings.Contains(builds[0], "kube-scheduler") {
		t.Errorf("builds %q, want one of kube-scheduler alone", builds)
	}
}

func TestKwokIsNotDownloadedBecauseNobodyPublishesItsChecksums(t *testing.T) {
	b := newBench(t)
	b.Source = binaries.Release
	_, err := b.Get(context.Background(), "v1.36.3", binaries.Kwok)
	if err == nil {
		t.Fatal("no error")
	}
	contains(t, err.Error(), "kwok", "no checksums", "--source build")
}

func TestReleasedBinaryOfAnotherVersionIsRefused(t *testing.T) {
	for _, version := range []string{"v1.36.2", "v1.36.30", "v1.36.3-rc.1"} {
		b := newBench(t)
		b.Source = binaries.Release
		b.publish(apiServer(), program("kube-apiserver", version))
		_, err := b.Get(context.Background(), "v1.36.3", binaries.APIServer)
		if err == nil {
			t.Fatalf("%s accepted as v1.36.3", version)
		}
		contains(t, err.Error(), "kube-apiserver", "Kubernetes v1.36.3", "Kubernetes "+version)
		if left := b.inCache(); len(left) > 0 {
			t.Errorf("left in the cache: %q", left)
		}
	}
}
