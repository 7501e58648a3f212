package binaries

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"
)

// extract writes one member of the archive file to dest. The kind of archive
// is told by the end of name. Nothing else of the archive is written.
func extract(file, name, member, dest string) error {
	if strings.HasSuffix(name, ".zip") {
		return extractZip(file, member, dest)
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	unzipped, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return fmt.Errorf("it holds no %s", member)
		}
		if err != nil {
			return err
		}
		if strings.TrimPrefix(header.Name, "./") == member && header.Typeflag == tar.TypeReg {
			return copyTo(dest, archive)
		}
	}
}

func extractZip(file, member, dest string) error {
	archive, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer archive.Close()
	for _, entry := range archive.File {
		if entry.Name != member {
			continue
		}
		content, err := entry.Open()
		if err != nil {
			return err
		}
		defer content.Close()
		return copyTo(dest, content)
	}
	return fmt.Errorf("it holds no %s", member)
}

func copyTo(dest string, from io.Reader) error {
	out, err := os.OpenFile(dest, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, from); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
