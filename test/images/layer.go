package images

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// File is one file of a layer: a folder when its name ends with a slash, a link, a
// copy of From, or Text.
type File struct {
	// Name is where it is, without a slash before it.
	Name, Link, From, Text string
	Mode                   int64
}

// Busybox returns the files of an image that has the static program busybox with
// these commands, and the users of Kubernetes' own agnhost image.
func Busybox(busybox string, commands []string) []File {
	files := []File{
		{Name: "bin/", Mode: 0o755},
		{Name: "bin/busybox", From: busybox, Mode: 0o755},
		{Name: "etc/", Mode: 0o755},
		{Name: "etc/passwd", Mode: 0o644, Text: "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\nuser-defined-in-image:x:1000:1000::/:/bin/sh\n"},
		{Name: "etc/group", Mode: 0o644, Text: "root:x:0:\nnobody:x:65534:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"},
		{Name: "root/", Mode: 0o700},
		{Name: "tmp/", Mode: 0o1777},
	}
	for _, command := range slices.Sorted(slices.Values(commands)) {
		if command = path.Base(command); command != "busybox" && command != "." && command != "/" {
			files = append(files, File{Name: "bin/" + command, Link: "busybox"})
		}
	}
	return files
}

// Layer returns a layer of files. It is read more than once, and not kept in
// memory: programs are large.
func Layer(files []File) (v1.Layer, error) {
	made, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() { w.CloseWithError(write(w, files)) }()
		return r, nil
	}, tarball.WithCompressionLevel(0))
	if err != nil {
		return nil, fmt.Errorf("making an image: %w", err)
	}
	return made, nil
}

func write(to io.Writer, files []File) error {
	archive := tar.NewWriter(to)
	for _, f := range files {
		if err := f.write(archive); err != nil {
			return err
		}
	}
	return archive.Close()
}

func (f File) write(archive *tar.Writer) error {
	header := &tar.Header{Name: f.Name, Mode: f.Mode, ModTime: fileTime, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	var content io.Reader = strings.NewReader(f.Text)
	switch {
	case strings.HasSuffix(f.Name, "/"):
		header.Typeflag, content = tar.TypeDir, &bytes.Reader{}
	case f.Link != "":
		header.Typeflag, header.Linkname, header.Mode, content = tar.TypeSymlink, f.Link, 0o777, &bytes.Reader{}
	case f.From != "":
		file, err := os.Open(f.From)
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
		header.Size = int64(len(f.Text))
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(archive, content)
	return err
}
