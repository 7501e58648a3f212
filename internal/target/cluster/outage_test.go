package cluster_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

func TestOutagesAreToldAsWhoeverMetThem(t *testing.T) {
	t.Parallel()
	made := kwoktest.Up(t)
	proxy := kwoktest.NewProxy(t, made)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	proxy.Kubeconfig(t, kubeconfig)
	var c, other *cluster.Cluster
	connect := func() {
		t.Helper()
		var err error
		if c, err = cluster.Connect(cluster.Target{Kubeconfig: kubeconfig}); err != nil {
			t.Fatal(err)
		}
		if other, err = c.Beside(); err != nil {
			t.Fatal(err)
		}
	}
	connect()
	ctx := t.Context()
	const between = `^the API server was away between \d\d:\d\d:\d\d\.\d{3} and \d\d:\d\d:\d\d\.\d{3} UTC, seen by `
	told := func(what string, since time.Time, want string) {
		t.Helper()
		if got := c.Outages(since); want == "" && got != "" || !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	back := func() {
		t.Helper()
		proxy.Fix()
		if err := c.Healthy(ctx); err != nil {
			t.Fatal(err)
		}
	}

	// What is asked in vain, but answered, is not an outage.
	since := time.Now()
	if _, err := c.Node(ctx, "none"); err == nil {
		t.Error("there is a node of that name")
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if c.Healthy(gone) == nil {
		t.Error("a question that was given up has an answer")
	}
	told("nothing", since, "")

	for what, test := range map[string]struct {
		meets http.HandlerFunc
		want  string
	}{
		"refused":                {kwoktest.Refuse(http.StatusServiceUnavailable), `GET /version: it answered 503`},
		"too many requests":      {kwoktest.Refuse(http.StatusTooManyRequests), `GET /version: it answered 429`},
		"a cut connection":       {kwoktest.Cut, `GET /version: EOF$`},
		"an answer that is lost": {proxy.Lose, `GET /version: EOF$`},
	} {
		connect()
		since := time.Now()
		proxy.Break(func(w http.ResponseWriter, r *http.Request) bool { test.meets(w, r); return true })
		if other.Healthy(ctx) == nil {
			t.Errorf("%s: it answers", what)
		}
		told(what+", that goes on", since, `^the API server was away since .* UTC, seen by a request of op-readiness: `+test.want)
		if other.Healthy(ctx) == nil {
			t.Errorf("%s: it answers", what)
		}
		back()
		told(what, since, between+`2 requests of op-readiness, the first: `+test.want)
		told(what+", afterwards", time.Now(), "")
	}

	// A watch that is cut is an outage though nothing else is asked meanwhile, and one
	// that its owner ends is none.
	connect()
	since = time.Now()
	nodes, err := c.Client().CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := c.Client().CoreV1().Pods("").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	nodes.Stop()
	for range nodes.ResultChan() { //nolint:revive // until it has ended
	}
	told("a watch that was ended", since, "")
	proxy.Break(nil)
	for range pods.ResultChan() { //nolint:revive // until it has ended
	}
	back()
	told("a watch that was cut", since, between+`a request of op-readiness: the watch on /api/v1/pods: .`)
	if got := c.Outages(since); strings.Contains(got, "; ") {
		t.Errorf("one outage is told as %q", got)
	}
}

// A watch is ended, and taken up again, when the time is up that every request has.
func TestTheEndOfAWatchIsNoOutage(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: " + server.URL + "}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x, user: {}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.ConnectWithin(cluster.Target{Kubeconfig: kubeconfig}, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var watches sync.WaitGroup
	for range 20 {
		w, err := c.Client().CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		watches.Go(func() {
			for range w.ResultChan() { // until it is ended
			}
		})
	}
	watches.Wait()
	if got := c.Outages(time.Time{}); got != "" {
		t.Errorf("got %q", got)
	}
}
