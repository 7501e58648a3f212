package binaries

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries/suite"

	"github.com/windows-op-readiness/windows-op-readiness/internal/whole"
)

// Source says where binaries may come from.
type Source string

const (
	// Auto downloads what is released and builds what cannot be downloaded.
	Auto Source = "auto"
	// Release only downloads.
	Release Source = "release"
	// Build only builds, from Go modules.
	Build Source = "build"
)

// ParseSource returns the source that s spells.
func ParseSource(s string) (Source, error) {
	switch source := Source(s); source {
	case Auto, Release, Build:
		return source, nil
	}
	return "", fmt.Errorf("unknown source %q: use auto, release, build", s)
}

// Store is a cache of binaries and the means to fill it. The zero value of
// each field but Dir means the default. A Store is safe for concurrent use,
// and so is its Dir for several processes.
type Store struct {
	// Dir is the cache, an absolute path; see [DefaultDir].
	Dir string
	// Source is [Auto] unless set.
	Source Source
	// Progress is told what takes time; nothing is told when it is nil.
	Progress io.Writer
	// OS and Arch are what the binaries are for, by Go's names: this machine
	// unless set.
	OS, Arch string

	// HTTP is the client for downloads, http.DefaultClient unless set.
	HTTP *http.Client
	// KubernetesURL, EtcdURL and SourceURL are the places that publish
	// Kubernetes, etcd and the sources of Kubernetes.
	KubernetesURL, EtcdURL, SourceURL string
	// ProbeTimeout limits the first answer of a release's host, StallTimeout
	// the time in which a download brings nothing.
	ProbeTimeout, StallTimeout time.Duration

	// Go is the go command, "go" from the PATH unless set.
	Go string
	// Environ is the environment of child processes, os.Environ() unless set.
	Environ []string
	// Now is the clock that dates manifests.
	Now func() time.Time

	telling sync.Mutex
}

// DefaultDir returns the cache that is meant when none is named:
// $OP_READINESS_CACHE, else windows-op-readiness in the user's cache folder.
// getenv reads the environment.
func DefaultDir(getenv func(string) string) (string, error) {
	if dir := getenv("OP_READINESS_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for the cache of binaries: %w: set OP_READINESS_CACHE to a folder", err)
	}
	return filepath.Join(dir, "windows-op-readiness"), nil
}

// Get returns the absolute paths of the named binaries for the Kubernetes
// version, obtaining first whatever is not in the cache. etcd comes in the
// version that Kubernetes requires, kwok and kwokctl in [KwokVersion].
//
// The error is a [*CorruptError] when a cached file is not what was put there,
// a [*ChecksumError] when a download is not what was published, and wraps a
// [*CommandError] when a build fails. What was obtained before an error, or
// before ctx ended, stays in the cache.
func (s *Store) Get(ctx context.Context, kubernetesVersion string, names ...Name) (map[Name]string, error) {
	parts, err := s.parts(ctx, kubernetesVersion, names)
	if err != nil {
		return nil, err
	}
	paths := map[Name]string{}
	for _, part := range parts {
		if err := s.ensure(ctx, part.component, part.names); err != nil {
			return nil, fmt.Errorf("obtaining %s of %s: %w", join(part.names), part.component, err)
		}
		for _, name := range part.names {
			paths[name] = s.path(part.component, name)
			if name == OpReadinessTest {
				s.removeUnused(paths[name])
			}
		}
	}
	return paths, nil
}

// Missing returns those of names that Get would have to obtain, without
// obtaining anything. It never uses the network for pinned versions.
func (s *Store) Missing(ctx context.Context, kubernetesVersion string, names ...Name) ([]Name, error) {
	parts, err := s.parts(ctx, kubernetesVersion, names)
	if err != nil {
		return nil, err
	}
	var missing []Name
	for _, part := range parts {
		more, err := s.missing(part.component, part.names)
		if err != nil {
			return nil, err
		}
		missing = append(missing, more...)
	}
	return missing, nil
}

// part is some binaries of one component.
type part struct {
	component
	names []Name
}

// parts sorts names by the component that they belong to.
func (s *Store) parts(ctx context.Context, kubernetesVersion string, names []Name) ([]part, error) {
	version, err := ParseVersion(kubernetesVersion)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(s.Dir) {
		return nil, fmt.Errorf("the cache of binaries must be an absolute path, not %q", s.Dir)
	}
	for _, name := range names {
		if _, err := ParseName(string(name)); err != nil {
			return nil, err
		}
		if err := CheckVersion(name, version); err != nil {
			return nil, err
		}
	}
	var parts []part
	for _, f := range families {
		wanted := ofFamily(f, names)
		if len(wanted) == 0 {
			continue
		}
		c := component{f, version}
		switch f {
		case etcd:
			if c.version, err = s.etcdVersion(ctx, version); err != nil {
				return nil, err
			}
		case kwok:
			c.version = KwokVersion
		}
		parts = append(parts, part{c, wanted})
	}
	return parts, nil
}

// ensure makes sure that the cache holds the named binaries of c.
func (s *Store) ensure(ctx context.Context, c component, names []Name) error {
	missing, err := s.missing(c, names)
	if err != nil || len(missing) == 0 {
		return err
	}
	unlock, err := s.lock(ctx, c)
	if err != nil {
		return err
	}
	defer unlock()
	// Another process may have obtained them while this one waited.
	missing, err = s.missing(c, names)
	if err != nil || len(missing) == 0 {
		return err
	}
	dir := s.folder(c)
	if err := removeStale(dir); err != nil {
		return err
	}
	work, err := os.MkdirTemp(dir, whole.Prefix+"*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	return s.obtain(ctx, c, missing, work)
}

// obtain downloads or builds the named binaries of c into work and publishes
// each in the cache. After a wrong checksum it never builds instead.
func (s *Store) obtain(ctx context.Context, c component, names []Name, work string) error {
	left := names
	if s.source() != Build {
		var err error
		left, err = s.download(ctx, c, names, work)
		if len(left) == 0 || ctx.Err() != nil {
			return err
		}
		var checksum *ChecksumError
		switch {
		case errors.As(err, &checksum):
			return err
		case s.source() == Release:
			return fmt.Errorf("%w: build it with --source build", err)
		}
		s.tellf("%s: %v; building %s from Go modules instead", c, err, join(left))
	}
	return s.build(ctx, c, left, work)
}

// removeStale removes what an interrupted attempt has left in dir. The caller
// holds the lock, so nobody is working there.
func removeStale(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), whole.Prefix) {
			if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
				return fmt.Errorf("removing what an interrupted attempt left: %w", err)
			}
		}
	}
	return nil
}

func (s *Store) source() Source {
	if s.Source == "" {
		return Auto
	}
	return s.Source
}

// system returns the operating system and architecture of the binaries.
func (s *Store) system() (goos, goarch string) {
	goos, goarch = s.OS, s.Arch
	if goos == "" {
		goos = runtime.GOOS
	}
	if goarch == "" {
		goarch = runtime.GOARCH
	}
	return goos, goarch
}

func (s *Store) folder(c component) string {
	goos, goarch := s.system()
	return filepath.Join(s.Dir, string(c.family), c.version, goos+"-"+goarch)
}

// file returns the file name of a binary. Programs with other tests have another
// op-readiness.test each, and must not replace that of a run that goes on.
func (s *Store) file(name Name) string {
	if name == OpReadinessTest {
		name += Name(fmt.Sprintf("-%.6x", sha256.Sum256([]byte(suite.Hash()))))
	}
	if goos, _ := s.system(); goos == "windows" {
		return string(name) + ".exe"
	}
	return string(name)
}

func (s *Store) path(c component, name Name) string {
	return filepath.Join(s.folder(c), s.file(name))
}

func (s *Store) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

func (s *Store) environ() []string {
	if s.Environ != nil {
		return s.Environ
	}
	return os.Environ()
}

// tellf writes one line of narration.
func (s *Store) tellf(format string, args ...any) {
	if s.Progress == nil {
		return
	}
	s.telling.Lock()
	defer s.telling.Unlock()
	fmt.Fprintf(s.Progress, format+"\n", args...)
}
