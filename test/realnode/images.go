package realnode

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/mod/semver"
)

// pickImages picks them from what e2e.test --list-images prints: of each the
// newest, as the others are there to be replaced by it.
func pickImages(list string) (Images, error) {
	var names Images
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

// writeImages writes an archive of the images, as docker save does, to file.
// Each is one layer of agnhost and a static busybox with its commands.
func writeImages(file string, names Images, agnhost, busybox string, commands []string) error {
	base, err := layer(busyboxFiles(busybox, commands))
	if err != nil {
		return err
	}
	tests, err := layer([]entry{
		{name: "agnhost", from: agnhost, mode: 0o755},
		{name: "agnhost-2", link: "agnhost"},
		{name: "uploads/", mode: 0o755},
	})
	if err != nil {
		return err
	}
	images := map[name.Tag]v1.Image{}
	for _, image := range []struct {
		name            string
		layers          []v1.Layer
		entrypoint, cmd []string
	}{
		{names.Agnhost, []v1.Layer{base, tests}, []string{"/agnhost"}, []string{"pause"}},
		{names.Busybox, []v1.Layer{base}, nil, []string{"sh"}},
		{names.Pause, []v1.Layer{tests}, []string{"/agnhost", "pause"}, nil},
	} {
		tag, err := name.NewTag(image.name)
		if err != nil {
			return fmt.Errorf("naming an image: %w", err)
		}
		made, err := mutate.AppendLayers(empty.Image, image.layers...)
		if err != nil {
			return err
		}
		config, err := made.ConfigFile()
		if err != nil {
			return err
		}
		config = config.DeepCopy()
		config.OS, config.Architecture = "linux", runtime.GOARCH
		config.Created = v1.Time{Time: imageTime}
		config.Config = v1.Config{
			Entrypoint: image.entrypoint, Cmd: image.cmd, WorkingDir: "/",
			Env:    []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			Labels: map[string]string{"org.opencontainers.image.description": "stands in for " + image.name + " in the tests of windows-op-readiness"},
		}
		if images[tag], err = mutate.ConfigFile(made, config); err != nil {
			return err
		}
	}
	if err := tarball.MultiWriteToFile(file, images); err != nil {
		return fmt.Errorf("writing the archive of images: %w", err)
	}
	return nil
}

// imageTime dates everything in the images, so that equal content has equal
// digests.
var imageTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// entry is one file of a layer: a folder when its name ends with a slash, a
// link, a copy of from, or text.
type entry struct {
	name, link, from, text string
	mode                   int64
}

func busyboxFiles(busybox string, commands []string) []entry {
	entries := []entry{
		{name: "bin/", mode: 0o755},
		{name: "bin/busybox", from: busybox, mode: 0o755},
		{name: "etc/", mode: 0o755},
		// The user and group that Kubernetes' own agnhost image has.
		{name: "etc/passwd", mode: 0o644, text: "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\nuser-defined-in-image:x:1000:1000::/:/bin/sh\n"},
		{name: "etc/group", mode: 0o644, text: "root:x:0:\nnobody:x:65534:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"},
		{name: "root/", mode: 0o700},
		{name: "tmp/", mode: 0o1777},
	}
	for _, command := range slices.Sorted(slices.Values(commands)) {
		if command = path.Base(command); command != "busybox" && command != "." && command != "/" {
			entries = append(entries, entry{name: "bin/" + command, link: "busybox"})
		}
	}
	return entries
}

// layer returns a layer of files. It is read more than once, and not kept in
// memory: agnhost is large.
func layer(entries []entry) (v1.Layer, error) {
	made, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() { w.CloseWithError(writeLayer(w, entries)) }()
		return r, nil
	}, tarball.WithCompressionLevel(0))
	if err != nil {
		return nil, fmt.Errorf("making an image: %w", err)
	}
	return made, nil
}

func writeLayer(to io.Writer, entries []entry) error {
	archive := tar.NewWriter(to)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, ModTime: imageTime, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		var content io.Reader = strings.NewReader(e.text)
		switch {
		case strings.HasSuffix(e.name, "/"):
			header.Typeflag, content = tar.TypeDir, &bytes.Reader{}
		case e.link != "":
			header.Typeflag, header.Linkname, header.Mode, content = tar.TypeSymlink, e.link, 0o777, &bytes.Reader{}
		case e.from != "":
			file, err := os.Open(e.from)
			if err != nil {
				return err
			}
			defer file.Close()
			info, err := file.Stat()
			if err != nil {
				return err
			}
			header.Size, content = info.Size(), file
		default:
			header.Size = int64(len(e.text))
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.Copy(archive, content); err != nil {
			return err
		}
	}
	return archive.Close()
}
