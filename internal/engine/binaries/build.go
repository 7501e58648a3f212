package binaries

import (
	"context"
	"errors"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries/pins"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries/suite"
)

// build compiles the named binaries of c in work, proves and publishes them.
func (s *Store) build(ctx context.Context, c component, names []Name, work string) error {
	source, out := filepath.Join(work, "source"), filepath.Join(work, "out")
	for _, dir := range []string{source, out} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	mod, sum, pinned := pins.Read(string(c.family), c.version)
	var err error
	if !pinned {
		s.tellf("%s: not a pinned version: resolving its modules (usually a minute)", c)
		mod, sum, err = s.resolve(ctx, c, work)
		if err != nil {
			return err
		}
	}
	if err := s.checkGo(ctx, c, mod); err != nil {
		return err
	}
	if err := writeModule(source, c.family, mod, sum); err != nil {
		return err
	}
	programs, tests := s.split(names)
	for i, batch := range append([][]Name{programs}, tests...) {
		if len(batch) == 0 {
			continue
		}
		module := source
		if batch[0] == OpReadinessTest {
			module = filepath.Join(work, "suite")
			if err := writeSuite(module, mod, sum); err != nil {
				return err
			}
		}
		s.tellf("%s: building %s (up to %s from a cold build cache, seconds from a warm one)", c, join(batch), usually(batch))
		what := fmt.Sprintf("%s: building %s", c, join(batch))
		err := s.stillTelling(what, func() error {
			_, err := run(ctx, module, s.goEnviron(), s.compile(c, batch, i > 0, out)...)
			return err
		})
		if err != nil {
			return err
		}
		for _, name := range batch {
			if err := s.publish(ctx, c, name, filepath.Join(out, s.file(name)), Build, name.from()); err != nil {
				return err
			}
		}
	}
	return nil
}

// split parts names into programs, which one go command builds together, and
// test binaries, which need one each.
func (s *Store) split(names []Name) (programs []Name, tests [][]Name) {
	for _, name := range names {
		if recipes[name].test {
			tests = append(tests, []Name{name})
		} else {
			programs = append(programs, name)
		}
	}
	return programs, tests
}

// compile returns the go command that builds names into out.
func (s *Store) compile(c component, names []Name, test bool, out string) []string {
	flags := "-s -w"
	if c.family == kubernetes {
		// Without these the API server reports v0.0.0-master+$Format:%H$,
		// which clients refuse to parse.
		flags += " -X k8s.io/component-base/version.gitVersion=" + c.version +
			" -X k8s.io/component-base/version.gitMajor=1" +
			" -X k8s.io/component-base/version.gitMinor=" + minor(c.version)
	}
	if names[0] == OpReadinessTest {
		flags += " -X " + suite.Module + ".sourceHash=" + suite.Hash()
	}
	args := []string{s.goCommand(), "build"}
	if test {
		// Vetting would go through all of Kubernetes, and takes longer than
		// building it.
		args = []string{s.goCommand(), "test", "-c", "-vet=off"}
	}
	if len(names) == 1 {
		out = filepath.Join(out, s.file(names[0]))
	} else {
		out += string(filepath.Separator) // a folder: files are named after packages
	}
	args = append(args, "-mod=readonly", "-trimpath", "-ldflags", flags, "-o", out)
	for _, name := range names {
		args = append(args, recipes[name].pkg)
	}
	return args
}

// usually returns how long building names takes at most.
func usually(names []Name) string {
	var total time.Duration
	for _, name := range names {
		total += recipes[name].cold
	}
	return total.String()
}

// stillTelling runs do, and tells every half minute that it is still at it.
func (s *Store) stillTelling(what string, do func() error) error {
	done := make(chan error, 1)
	begin := time.Now()
	go func() { done <- do() }()
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			s.tellf("%s: %s so far", what, time.Since(begin).Round(time.Second))
		}
	}
}

// checkGo makes sure that there is a Go that can build a module with this
// go.mod, and says which one is needed when there is not.
func (s *Store) checkGo(ctx context.Context, c component, mod []byte) error {
	file, err := modfile.ParseLax("go.mod", mod, nil)
	if err != nil {
		return fmt.Errorf("reading the go.mod of %s: %w", c, err)
	}
	if !s.haveGo() {
		return fmt.Errorf("building %s needs Go, and there is no %q on the PATH: install it from https://go.dev/dl/", c, s.goCommand())
	}
	if file.Go == nil {
		return nil
	}
	out, err := run(ctx, os.TempDir(), s.goEnviron(), s.goCommand(), "env", "GOVERSION", "GOTOOLCHAIN")
	if err != nil {
		return err
	}
	have, toolchain, _ := strings.Cut(strings.TrimSpace(out), "\n")
	need := "go" + file.Go.Version
	newerAllowed := toolchain == "" || toolchain == "auto" || strings.HasSuffix(toolchain, "+auto") || strings.HasSuffix(toolchain, "path")
	if version.IsValid(have) && version.Compare(have, need) < 0 && !newerAllowed {
		return fmt.Errorf("building %s needs Go %s or newer, and this is %s with GOTOOLCHAIN=%s: install a newer one from https://go.dev/dl/ or set GOTOOLCHAIN=auto", c, file.Go.Version, have, toolchain)
	}
	return nil
}

func (s *Store) goCommand() string {
	if s.Go == "" {
		return "go"
	}
	return s.Go
}

func (s *Store) haveGo() bool {
	_, err := exec.LookPath(s.goCommand())
	return !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, os.ErrNotExist)
}

// native tells whether the binaries are for this machine.
func (s *Store) native() bool {
	native := &Store{}
	goos, goarch := s.system()
	thisOS, thisArch := native.system()
	return goos == thisOS && goarch == thisArch
}

// goEnviron is the environment of the go command: the user's, except for what
// would change what is built.
func (s *Store) goEnviron() []string {
	goos, goarch := s.system()
	return append(append([]string(nil), s.environ()...),
		"GO111MODULE=on", "GOWORK=off", "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0",
		"GOOS="+goos, "GOARCH="+goarch)
}
