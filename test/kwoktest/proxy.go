package kwoktest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
)

// Proxy stands between a client and a cluster's API server, to break what
// comes through it: with [Refuse], [Cut], [Proxy.Lose], [Proxy.Delay],
// [Proxy.StandStill], or any other handler.
type Proxy struct {
	server  *httptest.Server
	through http.Handler

	mu      sync.Mutex
	spoil   func(http.ResponseWriter, *http.Request) bool
	open    map[*http.Request]context.CancelFunc
	changed chan struct{} // closed when spoil changes
}

// NewProxy puts a proxy before the cluster's API server; it goes with the test.
func NewProxy(t *testing.T, c *provider.Cluster) *Proxy {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	through := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // a watch is a stream
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p := &Proxy{through: through, open: map[*http.Request]context.CancelFunc{}, changed: make(chan struct{})}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		p.mu.Lock()
		spoil := p.spoil
		p.open[r] = cancel
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.open, r)
		}()
		if spoil == nil || !spoil(w, r) {
			through.ServeHTTP(w, r)
		}
	}))
	p.server.Start()
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// Config is how clients reach the cluster through the proxy.
func (p *Proxy) Config() *rest.Config {
	return &rest.Config{Host: p.server.URL, QPS: 500, Burst: 500}
}

// Kubeconfig writes a kubeconfig for programs to reach the cluster through the
// proxy.
func (p *Proxy) Kubeconfig(t *testing.T, path string) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["proxy"] = &clientcmdapi.Cluster{Server: p.server.URL}
	config.AuthInfos["proxy"] = &clientcmdapi.AuthInfo{}
	config.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy", AuthInfo: "proxy"}
	config.CurrentContext = "proxy"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
}

// Break cuts every connection, and lets spoil answer requests from then on: it
// reports whether it did. nil lets all of them through.
func (p *Proxy) Break(spoil func(http.ResponseWriter, *http.Request) bool) {
	p.mu.Lock()
	p.become(spoil)
	p.mu.Unlock()
	p.server.CloseClientConnections()
}

// become changes what requests meet; p.mu is held.
func (p *Proxy) become(spoil func(http.ResponseWriter, *http.Request) bool) {
	p.spoil = spoil
	close(p.changed)
	p.changed = make(chan struct{})
}

// BreakOnly cuts the requests that match, and lets answer answer those that come
// from then on; all others are left alone.
func (p *Proxy) BreakOnly(match func(*http.Request) bool, answer http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.become(func(w http.ResponseWriter, r *http.Request) bool {
		if !match(r) {
			return false
		}
		answer(w, r)
		return true
	})
	for r, cancel := range p.open {
		if match(r) {
			cancel()
		}
	}
}

// Fix lets all requests through again, and cuts nothing.
func (p *Proxy) Fix() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.become(nil)
}

// Refuse answers with a status, as a load balancer does whose server is away.
func Refuse(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, http.StatusText(status), status) }
}

// Cut closes the connection before the request reaches the API server.
func Cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// Lose lets the API server do what is asked, and then cuts the connection in
// place of the answer.
func (p *Proxy) Lose(_ http.ResponseWriter, r *http.Request) {
	p.through.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// Delay passes requests on after a while.
func (p *Proxy) Delay(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			p.through.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
}

// StandStill keeps requests until the proxy is fixed or broken in another way,
// and passes on those whose clients are still there.
func (p *Proxy) StandStill(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	changed := p.changed
	p.mu.Unlock()
	select {
	case <-changed:
		p.through.ServeHTTP(w, r)
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

// First lets answer answer n requests, and passes on those that follow.
func (p *Proxy) First(n int64, answer http.HandlerFunc) http.HandlerFunc {
	var met atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		if met.Add(1) > n {
			p.through.ServeHTTP(w, r)
			return
		}
		answer(w, r)
	}
}

// On returns what matches requests of a method whose path has a part, such as
// "/leases/"; "" matches any.
func On(method, part string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return (method == "" || r.Method == method) && strings.Contains(r.URL.Path, part)
	}
}

// WatchesAllPods reports whether a request is the watch on the pods of all
// namespaces.
func WatchesAllPods(r *http.Request) bool {
	return r.URL.Path == "/api/v1/pods" && r.URL.Query().Has("watch")
}
