package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// gcsEmulator starts an emulator with one bucket, behind around.
func gcsEmulator(t *testing.T, around func(http.Handler) http.Handler) string {
	t.Helper()
	emulator, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true})
	if err != nil {
		t.Fatal(err)
	}
	emulator.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "readiness"})
	return serve(t, emulator.HTTPHandler(), around)
}

func s3Emulator(t *testing.T, around func(http.Handler) http.Handler) string {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	backend := s3mem.New()
	if err := backend.CreateBucket("readiness"); err != nil {
		t.Fatal(err)
	}
	return serve(t, gofakes3.New(backend).Server(), around)
}

func serve(t *testing.T, h http.Handler, around func(http.Handler) http.Handler) string {
	if around != nil {
		h = around(h)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// hasty repeats without waiting long.
var hasty = Retry{Attempts: 3, Wait: time.Millisecond, MaxWait: time.Millisecond}

func open(t *testing.T, url string, o Options) *Bucket {
	t.Helper()
	if o.Retry.Attempts == 0 {
		o.Retry = hasty
	}
	b, err := Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func object(key, content string) *Object {
	sum, err := SumOf(strings.NewReader(content))
	if err != nil {
		panic(err)
	}
	return &Object{
		Key: key, ContentType: "text/plain; charset=utf-8", Sum: sum,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil },
	}
}

// each runs a test on every kind of bucket, at its root and below a prefix.
func each(t *testing.T, test func(t *testing.T, b *Bucket)) {
	kinds := map[string]func(t *testing.T) (string, Options){
		"gs": func(t *testing.T) (string, Options) {
			return "gs://readiness", Options{Endpoint: gcsEmulator(t, nil)}
		},
		"s3": func(t *testing.T) (string, Options) {
			return "s3://readiness", Options{Endpoint: s3Emulator(t, nil)}
		},
		"file": func(t *testing.T) (string, Options) {
			url, err := FileURL(filepath.Join(t.TempDir(), "a bucket"))
			if err != nil {
				t.Fatal(err)
			}
			return url, Options{}
		},
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			url, o := kind(t)
			test(t, open(t, url, o))
		})
		if name == "file" {
			continue
		}
		t.Run(name+" below a prefix", func(t *testing.T) {
			url, o := kind(t)
			test(t, open(t, url+"/some/where", o))
		})
	}
}

func keys(t *testing.T, b *Bucket, o ListOptions) []string {
	t.Helper()
	found := []string{}
	if err := b.List(t.Context(), o, func(a *Attrs) error {
		found = append(found, a.Key)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestObjectsComeBackAsTheyWerePut(t *testing.T) {
	each(t, func(t *testing.T, b *Bucket) {
		o := object("logs/job/1/a.txt", "hello")
		o.Metadata = map[string]string{"x-goog-meta-link": "gs://elsewhere/x"}
		for _, o := range []*Object{o, object("logs/job/2/empty.txt", ""), object("logs/job/2/umlaut ä#%.txt", "ä")} {
			if err := b.Put(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		data, err := b.ReadAll(t.Context(), o.Key, 5)
		if err != nil || string(data) != "hello" {
			t.Errorf("read %q, %v", data, err)
		}
		a, err := b.Stat(t.Context(), o.Key)
		if err != nil {
			t.Fatal(err)
		}
		if a.Metadata["x-goog-meta-link"] != "gs://elsewhere/x" || a.ContentType != "text/plain; charset=utf-8" {
			t.Errorf("metadata %v, content type %q", a.Metadata, a.ContentType)
		}
		if same, err := b.Same(t.Context(), a, o.Sum); !same || err != nil {
			t.Errorf("what arrived is not the same as what was sent: %v", err)
		}
		for _, other := range []string{"HELLO", "hell"} {
			if same, err := b.Same(t.Context(), a, object("", other).Sum); same || err != nil {
				t.Errorf("is the same as %q: %v", other, err)
			}
		}
		if got, want := keys(t, b, ListOptions{Prefix: "logs/job/"}), []string{"logs/job/1/a.txt", "logs/job/2/empty.txt", "logs/job/2/umlaut ä#%.txt"}; !slices.Equal(got, want) {
			t.Errorf("listed %q, want %q", got, want)
		}
		if got, want := keys(t, b, ListOptions{Prefix: "logs/job/", Delimiter: "/"}), []string{"logs/job/1/", "logs/job/2/"}; !slices.Equal(got, want) {
			t.Errorf("listed %q, want %q", got, want)
		}
		if got, want := keys(t, b, ListOptions{Prefix: "logs/job/", Delimiter: "/", From: "logs/job/2"}), []string{"logs/job/2/"}; !slices.Equal(got, want) {
			t.Errorf("from 2 listed %q, want %q", got, want)
		}
		if _, err := b.ReadAll(t.Context(), o.Key, 4); err == nil {
			t.Error("a limit of 4 bytes lets 5 pass")
		}
		for range 2 {
			if err := b.Delete(t.Context(), o.Key); err != nil {
				t.Error(err)
			}
		}
		if _, err := b.Stat(t.Context(), o.Key); !errors.Is(err, ErrNotExist) {
			t.Errorf("looking at what was removed: %v", err)
		}
		if _, err := b.ReadAll(t.Context(), o.Key, 1); !errors.Is(err, ErrNotExist) {
			t.Errorf("reading what was removed: %v", err)
		}
	})
}

func TestListedObjectsCanBeCompared(t *testing.T) {
	each(t, func(t *testing.T, b *Bucket) {
		o := object("a", "hello")
		if err := b.Put(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		err := b.List(t.Context(), ListOptions{}, func(a *Attrs) error {
			same, err := b.Same(t.Context(), a, o.Sum)
			if !same {
				t.Error("is not the same as what was sent")
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestNewObjectsReplaceNone(t *testing.T) {
	each(t, func(t *testing.T, b *Bucket) {
		first, same, other := object("a", "one"), object("a", "one"), object("a", "two")
		first.New, same.New, other.New = true, true, true
		if err := b.Put(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if err := b.Put(t.Context(), same); err != nil {
			t.Errorf("the same again, as when an answer was lost: %v", err)
		}
		if err := b.Put(t.Context(), other); !errors.Is(err, ErrExists) {
			t.Errorf("other content: %v, want %v", err, ErrExists)
		}
		if data, err := b.ReadAll(t.Context(), "a", 10); err != nil || string(data) != "one" {
			t.Errorf("read %q, %v", data, err)
		}
	})
}

// A source that changes, or breaks off, must not leave half of it behind.
func TestNothingIsLeftOfASourceThatFails(t *testing.T) {
	each(t, func(t *testing.T, b *Bucket) {
		broken := object("broken", strings.Repeat("x", 1<<20))
		broken.Open = func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader("xxx"), failing{})), nil
		}
		changed := object("changed", "before")
		changed.Open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("after!")), nil }
		for _, o := range []*Object{broken, changed} {
			err := b.Put(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), "the disk broke") && !strings.Contains(err.Error(), "changed while it was read") {
				t.Errorf("%s: %v", o.Key, err)
			}
		}
		if got := keys(t, b, ListOptions{}); len(got) > 0 {
			t.Errorf("left: %q", got)
		}
	})
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk broke") }

// Large objects go in parts to s3://, and still match.
func TestLargeObjects(t *testing.T) {
	each(t, func(t *testing.T, b *Bucket) {
		content := bytes.Repeat([]byte("0123456789abcdef"), 20<<20/16)
		sum, err := SumOf(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		o := &Object{Key: "large", ContentType: "text/plain", Sum: sum, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
		if err := b.Put(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		a, err := b.Stat(t.Context(), "large")
		if err != nil {
			t.Fatal(err)
		}
		if same, err := b.Same(t.Context(), a, sum); !same || err != nil {
			t.Errorf("is not the same: %v", err)
		}
	})
}

// faults answers requests as it is told, before they reach the emulator.
type faults struct {
	mu     sync.Mutex
	seen   int
	answer func(n int, w http.ResponseWriter, r *http.Request) bool
}

// now sets how requests are answered from now on, and counts them anew.
func (f *faults) now(answer func(n int, w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen, f.answer = 0, answer
}

func (f *faults) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.seen++
		n, answer := f.seen, f.answer
		f.mu.Unlock()
		if answer != nil && answer(n, w, r) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

func TestRequestsAreRepeatedWhereItHelps(t *testing.T) {
	emulators := map[string]func(*testing.T, func(http.Handler) http.Handler) string{
		"gs://readiness": gcsEmulator,
		"s3://readiness": s3Emulator,
	}
	for url, emulator := range emulators {
		for _, c := range []struct {
			status, uploads int
		}{{408, 3}, {429, 3}, {500, 3}, {503, 3}, {0, 3}, {400, 1}, {401, 1}, {403, 1}, {404, 1}} {
			t.Run(fmt.Sprint(url, " ", c.status), func(t *testing.T) {
				var uploads atomic.Int32
				f := &faults{answer: func(_ int, w http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodPost || r.Method == http.MethodPut {
						uploads.Add(1)
					}
					if c.status == 0 {
						panic(http.ErrAbortHandler)
					}
					_, _ = io.Copy(io.Discard, r.Body)
					w.WriteHeader(c.status)
					return true
				}}
				b := open(t, url, Options{Endpoint: emulator(t, f.around)})
				if err := b.Put(t.Context(), object("a", "hello")); err == nil {
					t.Error("no error")
				}
				f.now(func(n int, w http.ResponseWriter, _ *http.Request) bool {
					if n == 1 && c.uploads > 1 {
						if c.status == 0 {
							panic(http.ErrAbortHandler)
						}
						w.WriteHeader(c.status)
						return true
					}
					return false
				})
				if seen := int(uploads.Load()); seen != c.uploads {
					t.Errorf("%d uploads, want %d", seen, c.uploads)
				}
				if err := b.Put(t.Context(), object("a", "hello")); err != nil {
					t.Errorf("after one failure: %v", err)
				}
			})
		}
	}
}

func TestTheServerSaysHowLongToWait(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	retry := Retry{Wait: time.Second, MaxWait: 4 * time.Second}.withDefaults()
	for header, least := range map[string]time.Duration{
		"":                              0,
		"17":                            17 * time.Second,
		"Sat, 21 Nov 2026 09:00:30 GMT": 30 * time.Second,
		"86400":                         maxRetryAfter,
		"-1":                            0,
		"nonsense":                      0,
	} {
		t.Run(header, func(t *testing.T) {
			b := open(t, "gs://readiness", Options{Retry: Retry{Attempts: 1}, Endpoint: gcsEmulator(t, func(http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Retry-After", header)
					w.WriteHeader(http.StatusTooManyRequests)
				})
			})})
			_, err := b.Stat(t.Context(), "a")
			if wait := retry.wait(1, retryAfter(err, now)); wait < max(least, time.Second/2) || wait > max(least, time.Second) {
				t.Errorf("waits %s for %v", wait, err)
			}
		})
	}
	for attempt, most := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
		if wait := retry.wait(attempt+1, 0); wait < most/2 || wait > most {
			t.Errorf("after attempt %d waits %s, want %s to %s", attempt+1, wait, most/2, most)
		}
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := open(t, "gs://readiness", Options{
		Retry: Retry{Attempts: 3, Wait: time.Hour, MaxWait: time.Hour, Note: func(string, error, time.Duration) { cancel() }},
		Endpoint: gcsEmulator(t, func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		}),
	})
	if err := b.Put(ctx, object("a", "hello")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A server that never answers is given up, and asked again.
func TestAServerThatHangsIsAskedAgain(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	f := &faults{answer: func(n int, _ http.ResponseWriter, r *http.Request) bool {
		if n == 1 {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-release:
			case <-r.Context().Done():
			}
			panic(http.ErrAbortHandler)
		}
		return false
	}}
	b := open(t, "gs://readiness", Options{
		Retry:    Retry{Attempts: 2, Wait: time.Millisecond, Timeout: 300 * time.Millisecond},
		Endpoint: gcsEmulator(t, f.around),
	})
	if err := b.Put(t.Context(), object("a", "hello")); err != nil {
		t.Error(err)
	}
}

// What the store gets is compared with what was sent by the store itself.
func TestCorruptionOnTheWayIsFound(t *testing.T) {
	corrupt := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			r.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(body, []byte("hello"), []byte("jello"))))
			next.ServeHTTP(w, r)
		})
	}
	for url, endpoint := range map[string]string{"gs://readiness": gcsEmulator(t, corrupt), "s3://readiness": s3Emulator(t, corrupt)} {
		b := open(t, url, Options{Endpoint: endpoint})
		if err := b.Put(t.Context(), object("a", "hello")); err == nil {
			t.Errorf("%s: no error", url)
		}
	}
}

func TestErrorsSayWhichPermissionIsMissing(t *testing.T) {
	denied := func(message string) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprintf(w, `{"error": {"code": 403, "message": %q}}`, message)
			})
		}
	}
	plain := gcsEmulator(t, denied("Access denied."))
	// Google wants this one for replacing an object.
	named := gcsEmulator(t, denied("robot@x.iam.gserviceaccount.com does not have storage.objects.delete access to the Google Cloud Storage object. Permission 'storage.objects.delete' denied on resource (or it may not exist)."))
	amazon := s3Emulator(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`)
		})
	})
	list := func(b *Bucket) error {
		return b.List(t.Context(), ListOptions{Prefix: "x"}, func(*Attrs) error { return nil })
	}
	put := func(b *Bucket) error { return b.Put(t.Context(), object("a", "hello")) }
	get := func(b *Bucket) error { _, err := b.ReadAll(t.Context(), "a", 1); return err }
	remove := func(b *Bucket) error { return b.Delete(t.Context(), "a") }
	for _, c := range []struct {
		url, endpoint string
		do            func(*Bucket) error
		says          string
		is            error
	}{
		{"gs://readiness", plain, list, "storage.objects.list", errDenied},
		{"gs://readiness", plain, put, "storage.objects.create", errDenied},
		{"gs://readiness", plain, get, "storage.objects.get", errDenied},
		{"gs://readiness", plain, remove, "storage.objects.delete", errDenied},
		{"gs://readiness", named, put, "storage.objects.delete", errDenied},
		{"s3://readiness", amazon, list, "s3:ListBucket", errDenied},
		{"s3://readiness", amazon, put, "s3:PutObject", errDenied},
		{"gs://missing", gcsEmulator(t, nil), list, "gcloud storage buckets create gs://missing", ErrNoBucket},
		{"gs://missing", gcsEmulator(t, nil), put, "gcloud storage buckets create gs://missing", ErrNoBucket},
		{"s3://missing", s3Emulator(t, nil), list, "aws s3 mb s3://missing", ErrNoBucket},
		{"s3://missing", s3Emulator(t, nil), put, "aws s3 mb s3://missing", ErrNoBucket},
	} {
		err := c.do(open(t, c.url, Options{Endpoint: c.endpoint}))
		if !errors.Is(err, c.is) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: got %v, want %v that says %q", c.url, err, c.is, c.says)
		}
	}
}

func TestAFolderThatCannotBeOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(t.TempDir(), "a", "b"), file} {
		url, err := FileURL(dir)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := Open(t.Context(), url, Options{}); err == nil {
			b.Close()
			t.Errorf("%s was opened", dir)
		}
	}
}

// Who only looks makes no folder.
func TestLookingMakesNoFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bucket")
	url, err := FileURL(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), url, Options{Existing: true}); !errors.Is(err, ErrNoBucket) {
		t.Errorf("got %v, want %v", err, ErrNoBucket)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
}

func TestURLsOfBuckets(t *testing.T) {
	for raw, want := range map[string]Location{
		"gs://a-bucket":        {Scheme: GCS, Name: "a-bucket"},
		"gs://a-bucket/":       {Scheme: GCS, Name: "a-bucket"},
		"s3://a.bucket/x/y/":   {Scheme: S3, Name: "a.bucket", Prefix: "x/y/"},
		"file:///srv/results/": {Scheme: File, Dir: filepath.FromSlash("/srv/results")},
		"file:///srv/a%20b":    {Scheme: File, Dir: filepath.FromSlash("/srv/a b")},
	} {
		if got, err := ParseURL(raw); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", raw, got, err, want)
		}
	}
	for _, raw := range []string{"", "a-bucket", "gs://", "gs:///x", "https://storage.googleapis.com/x", "gs://a b", "gs://bucket/../x", "gs://bucket/x?y", "file://relative", "file:///x?create_dir=true", "s3://bucket/a//b", "mem://x"} {
		if got, err := ParseURL(raw); !errors.Is(err, ErrURL) {
			t.Errorf("%q: %+v, %v; want an error", raw, got, err)
		}
	}
}

// No credentials is said at once, with what to do.
func TestWithoutCredentials(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none.json"))
	_, err := Open(t.Context(), "gs://readiness", Options{})
	if err == nil || !strings.Contains(err.Error(), "google-github-actions/auth") {
		t.Errorf("got %v", err)
	}
	t.Setenv("AWS_REGION", "eu-central-1")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("HOME", t.TempDir())
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	_, err = Open(t.Context(), "s3://readiness", Options{})
	if err == nil || !strings.Contains(err.Error(), "aws sso login") {
		t.Errorf("got %v", err)
	}
}

func TestAServerThatIsNotThere(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	for _, url := range []string{"gs://readiness", "s3://readiness"} {
		b := open(t, url, Options{Retry: hasty, Endpoint: gone.URL})
		err := b.List(t.Context(), ListOptions{}, func(*Attrs) error { return nil })
		if host := strings.TrimPrefix(gone.URL, "http://"); err == nil || !strings.Contains(err.Error(), host) || !strings.Contains(err.Error(), "see that the network leads there") {
			t.Errorf("%s: %v; want %s, and what to look at", url, err, host)
		}
	}
}

// loses lets uploads and removals arrive, and loses each answer to them. When
// all is set, no other request is answered either.
func loses(all *atomic.Bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			changes := r.Method != http.MethodGet && r.Method != http.MethodHead
			if changes {
				next.ServeHTTP(httptest.NewRecorder(), r)
			}
			if changes || all.Load() {
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		})
	}
}

// What was done counts, also where every answer that says so is lost.
func TestLostAnswers(t *testing.T) {
	for url, emulator := range map[string]func(*testing.T, func(http.Handler) http.Handler) string{
		"gs://readiness": gcsEmulator,
		"s3://readiness": s3Emulator,
	} {
		for _, fresh := range []bool{false, true} {
			t.Run(fmt.Sprint(url, " new ", fresh), func(t *testing.T) {
				var all atomic.Bool
				b := open(t, url, Options{Endpoint: emulator(t, loses(&all))})
				o := object("a", "hello")
				o.New, o.Metadata = fresh, map[string]string{"link": "gs://x"}
				if err := b.Put(t.Context(), o); err != nil {
					t.Errorf("the upload has arrived: %v", err)
				}
				if err := b.Delete(t.Context(), "a"); err != nil {
					t.Errorf("the object is gone: %v", err)
				}
				all.Store(true)
				if err := b.Put(t.Context(), o); !errors.Is(err, ErrUncertain) {
					t.Errorf("nobody knows whether the upload has arrived: %v", err)
				}
				if err := b.Delete(t.Context(), "a"); !errors.Is(err, ErrUncertain) {
					t.Errorf("nobody knows whether the object is gone: %v", err)
				}
			})
		}
	}
}

// What was there before is not what should have arrived.
func TestUploadsThatDidNotArrive(t *testing.T) {
	for url, emulator := range map[string]func(*testing.T, func(http.Handler) http.Handler) string{
		"gs://readiness": gcsEmulator,
		"s3://readiness": s3Emulator,
	} {
		t.Run(url, func(t *testing.T) {
			f := &faults{}
			b := open(t, url, Options{Endpoint: emulator(t, f.around)})
			before := object("a", "hello")
			before.Metadata = map[string]string{"link": "gs://x"}
			if err := b.Put(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			f.now(func(_ int, _ http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodGet && r.Method != http.MethodHead {
					panic(http.ErrAbortHandler)
				}
				return false
			})
			linked := object("a", "hello")
			linked.Metadata = map[string]string{"link": "gs://y"}
			typed := object("a", "hello")
			typed.ContentType = "application/json"
			for name, o := range map[string]*Object{"other content": object("a", "jello"), "other metadata": linked, "other type": typed, "nothing there": object("b", "hello")} {
				if err := b.Put(t.Context(), o); err == nil || errors.Is(err, ErrUncertain) {
					t.Errorf("%s: %v; want an error that leaves no doubt", name, err)
				}
			}
			if err := b.Delete(t.Context(), "a"); err == nil || errors.Is(err, ErrUncertain) {
				t.Errorf("removing: %v; want an error that leaves no doubt", err)
			}
		})
	}
}

// A role that may create and not delete cannot repeat an upload whose answer
// was lost: Google refuses it, because the object is there.
func TestAnUploadThatIsRefusedBecauseItArrived(t *testing.T) {
	created := func(next http.Handler) http.Handler {
		uploads := 0
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				next.ServeHTTP(w, r)
				return
			}
			if uploads++; uploads > 1 {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		})
	}
	b := open(t, "gs://readiness", Options{Endpoint: gcsEmulator(t, created)})
	if err := b.Put(t.Context(), object("a", "hello")); err != nil {
		t.Error(err)
	}
}

// Google wants another permission for replacing an object than for making one,
// and does not always name it.
func TestReplacingTakesThePermissionToDelete(t *testing.T) {
	f := &faults{}
	b := open(t, "gs://readiness", Options{Endpoint: gcsEmulator(t, f.around)})
	if err := b.Put(t.Context(), object("latest-build.txt", "1")); err != nil {
		t.Fatal(err)
	}
	f.now(func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	})
	for key, want := range map[string]string{"latest-build.txt": "replacing gs://readiness/latest-build.txt: permission denied: it takes storage.objects.delete", "new": "storage.objects.create"} {
		if err := b.Put(t.Context(), object(key, "2")); !errors.Is(err, errDenied) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", key, err, want)
		}
	}
}
