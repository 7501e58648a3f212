package binaries

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// ChecksumError says that a downloaded file is not the one that was published.
type ChecksumError struct {
	URL string
	// Expected is the published checksum, Found that of what arrived.
	Expected, Found string
}

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("%s: expected checksum %s, found %s: nothing was kept; a proxy or mirror on the way may have changed the file. Try again, or build it with --source build",
		e.URL, e.Expected, e.Found)
}

// notPublished says that a release lacks something; what it says is why.
type notPublished string

func (e notPublished) Error() string { return string(e) }

// bundle is one published file and the binaries in it.
type bundle struct {
	url string
	// sums are the addresses that may hold the file's checksum, best first.
	sums []string
	// members maps each binary to its path in the archive; an archive's kind
	// is told by the end of the address. A bare binary has itself, "".
	members map[Name]string
}

// bundles returns the published files that hold the named binaries of c, or
// notPublished.
func (s *Store) bundles(c component, names []Name) ([]bundle, error) {
	goos, goarch := s.system()
	switch c.family {
	case kubernetes:
		base := orElse(s.KubernetesURL, "https://dl.k8s.io") + "/release/" + c.version
		var all []bundle
		tests := map[Name]string{}
		for _, name := range names {
			switch name {
			case E2ETest, Ginkgo:
				tests[name] = "kubernetes/test/bin/" + s.file(name)
				continue
			case Agnhost, OpReadinessTest:
				continue // not published as files
			}
			url := fmt.Sprintf("%s/bin/%s/%s/%s", base, goos, goarch, s.file(name))
			all = append(all, bundle{url, besides(url), map[Name]string{name: ""}})
		}
		if len(tests) > 0 {
			url := fmt.Sprintf("%s/kubernetes-test-%s-%s.tar.gz", base, goos, goarch)
			all = append(all, bundle{url, besides(url), tests})
		}
		return all, nil
	case etcd:
		kind := ".tar.gz"
		if goos != "linux" {
			kind = ".zip"
		}
		base := orElse(s.EtcdURL, "https://github.com/etcd-io/etcd/releases/download") + "/" + c.version
		stem := fmt.Sprintf("etcd-%s-%s-%s", c.version, goos, goarch)
		return []bundle{{base + "/" + stem + kind, []string{base + "/SHA256SUMS"}, map[Name]string{Etcd: stem + "/" + s.file(Etcd)}}}, nil
	default:
		return nil, notPublished("its release has no checksums, so it cannot be downloaded safely")
	}
}

// besides returns the addresses of the checksum files of Kubernetes' releases.
func besides(url string) []string { return []string{url + ".sha256", url + ".sha512"} }

func orElse(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return strings.TrimSuffix(value, "/")
}

// download fetches the named binaries of c into work and publishes them. It
// returns those that it could not get, with the reason. After a checksum that
// does not match it stops.
func (s *Store) download(ctx context.Context, c component, names []Name, work string) (left []Name, err error) {
	bundles, err := s.bundles(c, names)
	if err != nil {
		return names, err
	}
	left = names
	for _, b := range bundles {
		if err := s.fetch(ctx, c, b, work); err != nil {
			var absent notPublished
			if errors.As(err, &absent) && s.source() == Auto {
				continue // other files of this release may still be there
			}
			return left, err
		}
		left = except(left, b.members)
	}
	if len(left) > 0 {
		goos, goarch := s.system()
		return left, notPublished(fmt.Sprintf("not published for %s/%s", goos, goarch))
	}
	return nil, nil
}

func except(names []Name, members map[Name]string) []Name {
	var rest []Name
	for _, name := range names {
		if _, ok := members[name]; !ok {
			rest = append(rest, name)
		}
	}
	return rest
}

// fetch downloads one bundle, checks it and publishes its binaries.
func (s *Store) fetch(ctx context.Context, c component, b bundle, work string) error {
	// The checksum is small: asking for it first shows at little cost whether
	// the release can be reached at all.
	sum, newHash, err := s.publishedSum(ctx, b)
	if err != nil {
		return err
	}
	s.tellf("%s: downloading %s (usually a minute or less)", c, b.url)
	file := filepath.Join(work, "download")
	defer os.Remove(file)
	err = s.stillTelling(fmt.Sprintf("%s: downloading", c), func() error {
		err := s.save(ctx, b.url, file, newHash(), sum)
		if isTransport(err) && ctx.Err() == nil {
			s.tellf("%s: %v; trying again", c, err)
			err = s.save(ctx, b.url, file, newHash(), sum)
		}
		return err
	})
	if err != nil {
		return err
	}
	extracted := map[Name]string{}
	for name, member := range b.members {
		extracted[name] = filepath.Join(work, s.file(name))
		if member == "" {
			err = os.Rename(file, extracted[name])
		} else {
			err = extract(file, b.url, member, extracted[name])
		}
		if err != nil {
			return fmt.Errorf("unpacking %s: %w", b.url, err)
		}
	}
	for _, name := range ofFamily(c.family, keys(b.members)) {
		if err := s.publish(ctx, c, name, extracted[name], Release, b.url); err != nil {
			return err
		}
	}
	return nil
}

func keys(members map[Name]string) []Name {
	var names []Name
	for name := range members {
		names = append(names, name)
	}
	return names
}

// publishedSum returns the published checksum of b and the hash it is of.
func (s *Store) publishedSum(ctx context.Context, b bundle) (string, func() hash.Hash, error) {
	limit := s.ProbeTimeout
	if limit == 0 {
		limit = 4 * time.Second
		if s.source() == Release {
			limit = 30 * time.Second
		}
	}
	for _, url := range b.sums {
		text, err := s.text(ctx, url, limit)
		var absent notPublished
		if errors.As(err, &absent) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		sum := findSum(text, path.Base(b.url))
		switch len(sum) {
		case 2 * sha256.Size:
			return sum, sha256.New, nil
		case 2 * sha512.Size:
			return sum, sha512.New, nil
		}
		return "", nil, notPublished(fmt.Sprintf("%s holds no checksum of %s", url, path.Base(b.url)))
	}
	return "", nil, notPublished("no checksum published at " + strings.Join(b.sums, " or "))
}

// findSum returns the checksum of file in text: either a bare checksum or
// lines as sha256sum writes them. It returns "" when there is none.
func findSum(text []byte, file string) string {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		bare := len(fields) == 1
		if bare || len(fields) == 2 && strings.TrimPrefix(fields[1], "*") == file {
			if sum := strings.ToLower(fields[0]); isHex(sum) {
				return sum
			}
		}
	}
	return ""
}

func isHex(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil
}

// text returns the small file at url, within limit.
func (s *Store) text(ctx context.Context, url string, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	body, err := s.open(ctx, url)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, 1<<20))
	return text, s.transport(ctx, url, err)
}

// save downloads url to file and compares its checksum.
func (s *Store) save(ctx context.Context, url, file string, hash hash.Hash, sum string) error {
	limit := s.StallTimeout
	if limit == 0 {
		limit = 30 * time.Second
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(limit, func() { cancel(fmt.Errorf("nothing arrived for %s", limit)) })
	defer stalled.Stop()

	body, err := s.open(ctx, url)
	if err != nil {
		return err
	}
	defer body.Close()
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = io.Copy(io.MultiWriter(out, hash), reader(func(p []byte) (int, error) {
		n, err := body.Read(p)
		stalled.Reset(limit)
		if err != nil && !errors.Is(err, io.EOF) {
			err = s.transport(ctx, url, err)
		}
		return n, err
	}))
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		return err
	}
	if found := hex.EncodeToString(hash.Sum(nil)); found != sum {
		return &ChecksumError{URL: url, Expected: sum, Found: found}
	}
	return nil
}

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// open requests url. Not found is notPublished.
func (s *Store) open(ctx context.Context, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := s.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, s.transport(ctx, url, err)
	}
	switch response.StatusCode {
	case http.StatusOK:
		return response.Body, nil
	case http.StatusNotFound, http.StatusForbidden: // buckets answer 403 for what is not there
		response.Body.Close()
		return nil, notPublished(url + " is not published")
	}
	response.Body.Close()
	return nil, &transportError{url, errors.New("status " + response.Status)}
}

// transportError says that the network or a server failed, not the content.
type transportError struct {
	url string
	err error
}

func (e *transportError) Error() string { return fmt.Sprintf("cannot reach %s: %v", e.url, e.err) }
func (e *transportError) Unwrap() error { return e.err }

func isTransport(err error) bool {
	var transport *transportError
	return errors.As(err, &transport)
}

// transport wraps err, from a request for url, with the reason why ctx ended
// where that is the cause.
func (s *Store) transport(ctx context.Context, url string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if inner := errors.Unwrap(err); inner != nil {
		err = inner // net/http's own wrapping repeats the address
	}
	return &transportError{url, err}
}
