package images

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestTheNewestImageOfEachNameIsPicked(t *testing.T) {
	got, err := Pick(`registry.k8s.io/e2e-test-images/agnhost:2.9
gcr.io/k8s-authenticated-test/agnhost:2.99
registry.k8s.io/e2e-test-images/agnhost:2.63.0
registry.k8s.io/e2e-test-images/busybox:1.36.1-1
registry.k8s.io/e2e-test-images/busybox:1.37.0-1
registry.k8s.io/pause:3.10.2
`)
	want := Names{"registry.k8s.io/e2e-test-images/agnhost:2.63.0", "registry.k8s.io/e2e-test-images/busybox:1.37.0-1", "registry.k8s.io/pause:3.10.2"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := Pick("registry.k8s.io/pause:3.10.2\n"); err == nil || !strings.Contains(err.Error(), "agnhost") {
		t.Errorf("without agnhost: %v", err)
	}
}

func TestImagesCanBeReadBack(t *testing.T) {
	dir := t.TempDir()
	for _, program := range []string{"agnhost", "busybox"} {
		if err := os.WriteFile(filepath.Join(dir, program), []byte("the program "+program), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	names := Names{"registry.k8s.io/e2e-test-images/agnhost:2.63.0", "registry.k8s.io/e2e-test-images/busybox:1.37.0-1", "registry.k8s.io/pause:3.10.2"}
	write := func(file string) string {
		file = filepath.Join(dir, file)
		all, err := ForTests(names, filepath.Join(dir, "agnhost"), filepath.Join(dir, "busybox"), []string{"sh", "cat", "../../etc/evil"})
		if err == nil {
			err = Write(file, all)
		}
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	file := write("images.tar")
	tag, err := name.NewTag(names.Agnhost)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(file, &tag)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil || strings.Join(config.Config.Entrypoint, " ") != "/agnhost" || config.OS != "linux" {
		t.Errorf("configuration %+v, %v", config, err)
	}
	content := mutate.Extract(image)
	defer content.Close()
	found := map[string]string{}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		found[header.Name] = header.Linkname + string(text)
	}
	for file, want := range map[string]string{"agnhost": "the program agnhost", "agnhost-2": "agnhost", "bin/sh": "busybox", "bin/evil": "busybox", "bin/busybox": "the program busybox"} {
		if found[file] != want {
			t.Errorf("%s is %q, want %q", file, found[file], want)
		}
	}
}
