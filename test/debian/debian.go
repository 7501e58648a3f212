// Package debian gets test beds what they need of Debian, where this machine is
// Debian itself: derivatives have other versions of its packages, and other
// packages that they conflict with.
package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/test/program"
)

// Here tells whether this is Debian.
func Here() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && release("ID") == "debian"
}

// Codename returns the name of its release, like bookworm.
func Codename() string { return release("VERSION_CODENAME") }

// release returns a field of https://www.freedesktop.org/software/systemd/man/os-release.html.
func release(field string) string {
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), field+"="); ok {
			return strings.Trim(value, `"'`)
		}
	}
	return ""
}

// Install installs packages by name, as root. It never removes one. A second try
// after an error has new lists of packages: most often these are missing or old.
func Install(ctx context.Context, packages ...string) error {
	install := append([]string{"install", "--yes", "--no-install-recommends", "--no-remove"}, packages...)
	err := apt(ctx, install...)
	if err != nil && ctx.Err() == nil {
		if updated := apt(ctx, "update"); updated != nil {
			return errors.Join(err, updated)
		}
		err = apt(ctx, install...)
	}
	return err
}

func apt(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"--quiet"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	_, err := program.Output(cmd)
	return err
}

// Lack is a missing program or file, and the package that has it.
type Lack struct{ What, Package string }

// Missing returns the lacks as one sentence with what fixes them.
func Missing(lacks []Lack) string {
	var what []string
	for _, l := range lacks {
		what = append(what, l.What)
	}
	fix := "install them"
	if Here() {
		fix = "apt-get install " + strings.Join(Packages(lacks), " ")
	}
	return fmt.Sprintf("programs: %s (%s)", strings.Join(what, ", "), fix)
}

// Packages returns the packages that have what is missing, sorted, each once.
func Packages(lacks []Lack) []string {
	var packages []string
	for _, l := range lacks {
		packages = append(packages, l.Package)
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// Get installs what is missing, with a word to progress that begins with who.
func Get(ctx context.Context, progress io.Writer, who string, lacks []Lack) error {
	if len(lacks) == 0 {
		return nil
	}
	packages := Packages(lacks)
	fmt.Fprintf(progress, "%s: installing the Debian packages %s\n", who, strings.Join(packages, " "))
	return Install(ctx, packages...)
}
