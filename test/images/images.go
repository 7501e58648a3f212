// Package images writes archives of container images that are made of a few files
// of this machine, for nodes that have no registry. The archives are those of
// docker save (https://docs.docker.com/reference/cli/docker/image/save/); equal
// files give equal images.
package images

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/mod/semver"
)

// Names are the images that tests run, by what is in them.
type Names struct {
	// Agnhost is Kubernetes' own test program, beside busybox.
	Agnhost string
	// Busybox is the machine's own, whatever version the name says.
	Busybox string
	// Pause is agnhost, too.
	Pause string
}

// Pick picks them from what e2e.test --list-images prints: of each the newest, as
// the others are there to be replaced by it.
func Pick(list string) (Names, error) {
	var names Names
	for _, image := range []struct {
		repository string
		name       *string
	}{{"/e2e-test-images/agnhost", &names.Agnhost}, {"/e2e-test-images/busybox", &names.Busybox}, {"/pause", &names.Pause}} {
		for _, line := range strings.Fields(list) {
			repository, tag, _ := strings.Cut(line, ":")
			_, best, _ := strings.Cut(*image.name, ":")
			if strings.HasSuffix(repository, image.repository) && (*image.name == "" || semver.Compare("v"+tag, "v"+best) > 0) {
				*image.name = line
			}
		}
		if *image.name == "" {
			return names, fmt.Errorf("e2e.test lists no image *%s: it is not the e2e.test of a released Kubernetes", image.repository)
		}
	}
	return names, nil
}

// Image is an image to be written.
type Image struct {
	// Name is what it is found by, with its registry and tag.
	Name            string
	Layers          []v1.Layer
	Entrypoint, Cmd []string
}

// ForTests returns the images with these names, of the programs agnhost and
// busybox, which is static and has these commands.
func ForTests(names Names, agnhost, busybox string, commands []string) ([]Image, error) {
	base, err := Layer(Busybox(busybox, commands))
	if err != nil {
		return nil, err
	}
	tests, err := Layer([]File{
		{Name: "agnhost", From: agnhost, Mode: 0o755},
		{Name: "agnhost-2", Link: "agnhost"},
		{Name: "uploads/", Mode: 0o755},
	})
	if err != nil {
		return nil, err
	}
	return []Image{
		{Name: names.Agnhost, Layers: []v1.Layer{base, tests}, Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}},
		{Name: names.Busybox, Layers: []v1.Layer{base}, Cmd: []string{"sh"}},
		{Name: names.Pause, Layers: []v1.Layer{tests}, Entrypoint: []string{"/agnhost", "pause"}},
	}, nil
}

// Write writes an archive of the images to file. Images of the same content need
// names of their own.
func Write(file string, images []Image) error {
	tagged := map[name.Tag]v1.Image{}
	for _, image := range images {
		tag, err := name.NewTag(image.Name)
		if err != nil {
			return fmt.Errorf("naming an image: %w", err)
		}
		if tagged[tag], err = image.make(); err != nil {
			return err
		}
	}
	if err := tarball.MultiWriteToFile(file, tagged); err != nil {
		return fmt.Errorf("writing the archive of images: %w", err)
	}
	return nil
}

func (i Image) make() (v1.Image, error) {
	made, err := mutate.AppendLayers(empty.Image, i.Layers...)
	if err != nil {
		return nil, err
	}
	config, err := made.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Created = v1.Time{Time: fileTime}
	config.Config = v1.Config{
		Entrypoint: i.Entrypoint, Cmd: i.Cmd, WorkingDir: "/",
		Env:    []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Labels: map[string]string{"org.opencontainers.image.description": "stands in for " + i.Name + " in the tests of windows-op-readiness"},
	}
	return mutate.ConfigFile(made, config)
}

// fileTime dates everything in the images, so that equal content has equal
// digests.
var fileTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
