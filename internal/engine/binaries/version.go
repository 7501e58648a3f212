package binaries

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries/pins"

	"github.com/windows-op-readiness/windows-op-readiness/internal/whole"
)

// Pinned is the newest Kubernetes version whose build is pinned module by
// module, and the default wherever a version can be chosen.
const Pinned = "v1.36.3"

// KwokVersion is the version of kwok and kwokctl.
const KwokVersion = "v0.8.0"

var released = regexp.MustCompile(`^v1\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(alpha|beta|rc)\.\d+)?$`)

// ParseVersion returns the Kubernetes version that s means, as in "v1.36.3".
// The "v" may be left out.
func ParseVersion(s string) (string, error) {
	version := "v" + strings.TrimPrefix(s, "v")
	if !released.MatchString(version) {
		return "", fmt.Errorf("%q is not a released Kubernetes version: write it in full, such as %s", s, Pinned)
	}
	return version, nil
}

// PinnedVersions returns the Kubernetes versions whose builds are pinned,
// oldest first.
func PinnedVersions() []string { return pins.Versions(string(kubernetes)) }

// minor returns the minor version, "36" of v1.36.3.
func minor(version string) string { return released.FindStringSubmatch(version)[1] }

// staging returns the version of the staging modules, v0.36.3 of v1.36.3.
func staging(version string) string { return "v0" + strings.TrimPrefix(version, "v1") }

// etcdModule is the module whose version tells which etcd a Kubernetes
// version is made for.
const etcdModule = "go.etcd.io/etcd/client/v3"

// etcdVersion returns the version of etcd that Kubernetes itself requires.
// The answer for versions that are not pinned is remembered in the cache.
func (s *Store) etcdVersion(ctx context.Context, version string) (string, error) {
	if mod, _, ok := pins.Read(string(kubernetes), version); ok {
		return requiredEtcd(version, mod)
	}
	memo := filepath.Join(s.Dir, string(kubernetes), version, "go.mod.upstream")
	mod, err := os.ReadFile(memo)
	if err == nil {
		return requiredEtcd(version, mod)
	}
	if !os.IsNotExist(err) {
		return "", fmt.Errorf("reading what Kubernetes %s requires: %w", version, err)
	}
	mod, err = s.upstreamMod(ctx, kubernetesModule, version)
	if err != nil {
		return "", fmt.Errorf("finding out which etcd Kubernetes %s requires: %w", version, err)
	}
	etcd, err := requiredEtcd(version, mod)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(memo), 0o755); err != nil {
		return "", err
	}
	return etcd, whole.WriteFile(memo, mod, 0o644)
}

func requiredEtcd(version string, mod []byte) (string, error) {
	file, err := modfile.ParseLax("go.mod", mod, nil)
	if err != nil {
		return "", fmt.Errorf("reading the go.mod of Kubernetes %s: %w", version, err)
	}
	for _, require := range file.Require {
		if require.Mod.Path == etcdModule {
			return require.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("the go.mod of Kubernetes %s does not require %s: cannot tell which etcd it needs", version, etcdModule)
}
