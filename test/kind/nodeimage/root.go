package nodeimage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/test/debian"
	"github.com/windows-op-readiness/windows-op-readiness/test/program"
)

// module is kind's module, as the go command says.
type module struct{ Dir, Version string }

// findKind returns the module that this project requires; the working folder is in
// the project.
func findKind(ctx context.Context) (module, error) {
	var found module
	said, err := program.Output(exec.CommandContext(ctx, "go", "mod", "download", "-json", "sigs.k8s.io/kind"))
	if err != nil {
		return found, err
	}
	if err := json.Unmarshal([]byte(said), &found); err != nil {
		return found, fmt.Errorf("reading what go mod download says: %w", err)
	}
	return found, nil
}

// rootFolder is the folder that becomes the image's root.
type rootFolder string

func (r rootFolder) path(name string) string { return filepath.Join(string(r), name) }

// bootstrap fills the folder with Debian's packages, from the mirror and with the
// keys of this machine's apt.
func (r rootFolder) bootstrap(ctx context.Context) error {
	mirror, keyring, err := mirror(ctx, debian.Codename())
	if err != nil {
		return err
	}
	// What it mounts ends with it.
	args := []string{"--mount", "debootstrap", "--variant=minbase", "--include=" + strings.Join(packages, ",")}
	if keyring != "" {
		args = append(args, "--keyring="+keyring)
	}
	_, err = program.Output(exec.CommandContext(ctx, "unshare", append(args, debian.Codename(), string(r), mirror)...))
	return err
}

// mirror returns the first place from which apt gets packages of the release, and
// the file with its keys, which is empty where apt's usual ones are meant.
func mirror(ctx context.Context, release string) (uri, keyring string, err error) {
	list, err := program.Output(exec.CommandContext(ctx, "apt-get", "indextargets",
		"--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"))
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == release && fields[1] == "main" {
			keyring, err = signedBy(fields[2])
			return fields[2], keyring, err
		}
	}
	return "", "", fmt.Errorf("apt has no source with main of %s: add one to /etc/apt/sources.list.d", release)
}

// signedBy returns the file of keys that apt's sources
// (https://manpages.debian.org/sources.list.5) name for a mirror.
func signedBy(mirror string) (string, error) {
	sources, err := filepath.Glob("/etc/apt/sources.list.d/*.sources")
	if err != nil {
		return "", err
	}
	for _, file := range sources {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if keyring := signer(string(data), mirror); keyring != "" {
			return keyring, nil
		}
	}
	return "", nil
}

// signer returns the file that the first of sources with this mirror is signed by.
func signer(sources, mirror string) string {
	for source := range strings.SplitSeq(sources, "\n\n") {
		keyring, ours := "", false
		for line := range strings.Lines(source) {
			field, value, _ := strings.Cut(line, ":")
			switch value = strings.TrimSpace(value); field {
			case "URIs":
				ours = slices.ContainsFunc(strings.Fields(value), func(uri string) bool {
					return strings.TrimSuffix(uri, "/") == strings.TrimSuffix(mirror, "/")
				})
			case "Signed-By":
				keyring = value
			}
		}
		if ours && filepath.IsAbs(keyring) {
			return keyring
		}
	}
	return ""
}

// layKind lays kind's own files over the root, with the modes of its Dockerfile.
func (r rootFolder) layKind(dir string) error {
	dir = filepath.Join(dir, "images", "base", "files")
	return r.lay(os.DirFS(dir))
}

// layOwn lays what is not kind's over the root: this package's files and Kubernetes'
// binaries.
func (r rootFolder) layOwn(version string, programs map[binaries.Name]string) error {
	own, err := fs.Sub(files, "files")
	if err != nil {
		return err
	}
	if err := r.lay(own); err != nil {
		return err
	}
	for _, name := range []binaries.Name{binaries.Kubeadm, binaries.Kubelet, binaries.Kubectl} {
		if err := r.copy(programs[name], "usr/bin/"+string(name)); err != nil {
			return err
		}
	}
	setup, err := files.ReadFile("setup.sh")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(r.path("setup.sh"), setup, 0o755),
		os.WriteFile(r.path("kind/version"), []byte(version), 0o644))
}

// lay copies all files of from over the root. Those in folders named bin are
// programs.
func (r rootFolder) lay(from fs.FS) error {
	return fs.WalkDir(from, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(r.path(path), 0o755)
		}
		mode := fs.FileMode(0o644)
		if filepath.Base(filepath.Dir(path)) == "bin" {
			mode = 0o755
		}
		data, err := fs.ReadFile(from, path)
		if err != nil {
			return err
		}
		return os.WriteFile(r.path(path), data, mode)
	})
}

// copy copies a program of this machine into the root.
func (r rootFolder) copy(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(r.path(to), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// pack writes the root as a tar archive, with all its attributes.
func (r rootFolder) pack(ctx context.Context, archive string) error {
	_, err := program.Output(exec.CommandContext(ctx, "tar", "--create", "--file="+archive, "--numeric-owner", "--xattrs", "--directory="+string(r), "."))
	return err
}
