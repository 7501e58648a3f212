package binaries

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries/suite"
	"github.com/windows-op-readiness/windows-op-readiness/internal/tempdir"
)

// kubernetesModule is the module of Kubernetes itself.
const kubernetesModule = "k8s.io/kubernetes"

// modules names the module of each family.
var modules = map[family]string{
	kubernetes: kubernetesModule,
	etcd:       "go.etcd.io/etcd/server/v3",
	kwok:       "sigs.k8s.io/kwok",
}

// Pin is the module that builds one component: a folder's name and the content
// of its go.mod and go.sum.
type Pin struct {
	Family, Version string
	Mod, Sum        []byte
}

// Pins resolves what building the Kubernetes version, its etcd and kwok takes,
// from the module proxy, whether they are pinned or not.
func (s *Store) Pins(ctx context.Context, kubernetesVersion string) ([]Pin, error) {
	version, err := ParseVersion(kubernetesVersion)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "op-readiness-pins-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)

	mod, sum, err := s.resolve(ctx, component{kubernetes, version}, work)
	if err != nil {
		return nil, err
	}
	etcdVersion, err := requiredEtcd(version, mod)
	if err != nil {
		return nil, err
	}
	all := []Pin{{string(kubernetes), version, mod, sum}}
	for _, c := range []component{{etcd, etcdVersion}, {kwok, KwokVersion}} {
		mod, sum, err := s.resolve(ctx, c, work)
		if err != nil {
			return nil, err
		}
		all = append(all, Pin{string(c.family), c.version, mod, sum})
	}
	return all, nil
}

// resolve generates the module that builds c and lets go mod tidy fill it in,
// in a folder of its own under work. Go's checksum database vouches for what
// go.sum then says.
func (s *Store) resolve(ctx context.Context, c component, work string) (mod, sum []byte, err error) {
	upstream, err := s.upstreamMod(ctx, modules[c.family], c.version)
	if err != nil {
		return nil, nil, err
	}
	if err := s.checkGo(ctx, c, upstream); err != nil {
		return nil, nil, err
	}
	mod, err = generateMod(c, upstream)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp(work, "resolve-*")
	if err != nil {
		return nil, nil, err
	}
	if err := writeModule(dir, c.family, mod, nil); err != nil {
		return nil, nil, err
	}
	if _, err := run(ctx, dir, s.goEnviron(), s.goCommand(), "mod", "tidy"); err != nil {
		return nil, nil, fmt.Errorf("resolving the modules of %s: %w", c, err)
	}
	if mod, err = os.ReadFile(filepath.Join(dir, "go.mod")); err != nil {
		return nil, nil, err
	}
	sum, err = os.ReadFile(filepath.Join(dir, "go.sum"))
	return mod, sum, err
}

// generateMod returns a go.mod that requires the module of c as it would build
// itself: with its go and godebug lines and, for Kubernetes, with each staging
// module, which it requires as v0.0.0, at the version that was released.
func generateMod(c component, upstream []byte) ([]byte, error) {
	theirs, err := modfile.ParseLax("go.mod", upstream, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the go.mod of %s: %w", c, err)
	}
	if theirs.Go == nil {
		return nil, fmt.Errorf("the go.mod of %s names no Go version: it is older than this program can build; use --source release", c)
	}
	ours := &modfile.File{Syntax: &modfile.FileSyntax{}}
	steps := []error{
		ours.AddModuleStmt("op-readiness.invalid/build"),
		ours.AddGoStmt(theirs.Go.Version),
	}
	for _, line := range strings.Split(string(upstream), "\n") {
		// ParseLax skips godebug lines, and Parse would refuse the unknown.
		if setting, ok := strings.CutPrefix(strings.TrimSpace(line), "godebug "); ok {
			if key, value, ok := strings.Cut(setting, "="); ok {
				steps = append(steps, ours.AddGodebug(key, value))
			}
		}
	}
	steps = append(steps, ours.AddRequire(modules[c.family], c.version))
	if c.family == kubernetes {
		for _, require := range theirs.Require {
			if path := require.Mod.Path; require.Mod.Version == "v0.0.0" && strings.HasPrefix(path, "k8s.io/") {
				steps = append(steps, ours.AddReplace(path, "", path, staging(c.version)))
			}
		}
	}
	for _, err := range steps {
		if err != nil {
			return nil, fmt.Errorf("generating a go.mod for %s: %w", c, err)
		}
	}
	return ours.Format()
}

// writeModule writes a module to dir whose only package imports everything
// that is built of family f.
func writeModule(dir string, f family, mod, sum []byte) error {
	tools := "//go:build tools\n\npackage tools\n\nimport (\n"
	for _, name := range ofFamily(f, allNames()) {
		if name == OpReadinessTest {
			continue // a module of its own, see writeSuite
		}
		tools += fmt.Sprintf("\t_ %q\n", recipes[name].pkg)
	}
	tools += ")\n"
	files := map[string][]byte{"go.mod": mod, "go.sum": sum, "tools.go": []byte(tools)}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeSuite writes the module of op-readiness.test to dir. What Kubernetes' own
// binaries require covers it.
func writeSuite(dir string, mod, sum []byte) error {
	if err := suite.Unpack(dir); err != nil {
		return err
	}
	file, err := modfile.Parse("go.mod", mod, nil)
	if err != nil {
		return err
	}
	if err := file.AddModuleStmt(suite.Module); err != nil {
		return err
	}
	if mod, err = file.Format(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), mod, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644)
}

// upstreamMod returns the go.mod of a module at version: from the go command,
// which knows the user's proxy; without one, that of Kubernetes comes from its
// sources.
func (s *Store) upstreamMod(ctx context.Context, module, version string) ([]byte, error) {
	if module == kubernetesModule && (s.source() == Release || !s.haveGo()) {
		url := fmt.Sprintf("%s/%s/go.mod", orElse(s.SourceURL, "https://raw.githubusercontent.com/kubernetes/kubernetes"), version)
		return s.text(ctx, url, 30*time.Second)
	}
	// A folder of its own, so that no go.mod around it has a say.
	dir, err := tempdir.New()
	if err != nil {
		return nil, err
	}
	defer dir.RemoveAll()
	path, err := run(ctx, dir.Path, s.goEnviron(), s.goCommand(), "list", "-m", "-f", "{{.GoMod}}", module+"@"+version)
	if err != nil {
		return nil, fmt.Errorf("looking up %s %s (was it ever released?): %w", module, version, err)
	}
	return os.ReadFile(strings.TrimSpace(path))
}
