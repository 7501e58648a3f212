package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
)

// An image's name as e2e.test prints it: registry, path, tag. What else is
// printed, such as warnings, is not a name.
var imageName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9.:-]*(/[a-z0-9][a-z0-9._-]*)+:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
})

// Images asks the binary for the images of its tests, as nodes pull them.
// repoList is a file that overrides registries; "" for none.
func (b *Binary) Images(ctx context.Context, repoList string) ([]string, error) {
	args := []string{"--list-images"}
	if repoList != "" {
		args = append(args, "--kube-test-repo-list="+repoList)
	}
	out, err := b.ask(ctx, args...)
	if err != nil {
		return nil, err
	}
	var images []string
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		if name := lines.Text(); imageName().MatchString(name) {
			images = append(images, name)
		}
	}
	if len(images) == 0 {
		return nil, fmt.Errorf("%s --list-images names no image: it says %q", b.Path, excerpt(out))
	}
	slices.Sort(images)
	return slices.Compact(images), nil
}
