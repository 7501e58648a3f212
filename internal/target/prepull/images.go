package prepull

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// repositories are those of the images that the e2e framework itself pulls
// beforehand, on Windows and on Linux, and pause
// (https://github.com/kubernetes/kubernetes/blob/v1.36.3/test/e2e/common/util.go#L58).
var repositories = map[specs.OS][]string{
	specs.Windows: {"agnhost", "busybox", "nginx", "pause"},
	specs.Linux:   {"agnhost", "busybox", "ipc-utils", "nfs", "nginx", "nonroot", "pause"},
}

// versions is how many of an image are pulled: tests use a new one and the one
// before it. Older ones are there to be refused to who has no credentials.
const versions = 2

// Choose returns those of a list of images that nodes of a system are to pull, in
// order: which tests pull which image, no list tells.
func Choose(images []string, of specs.OS) []string {
	var chosen []string
	for _, repository := range repositories[of] {
		chosen = append(chosen, newest(images, repository)...)
	}
	return chosen
}

func newest(images []string, repository string) []string {
	type tagged struct {
		image string
		at    *version.Version
	}
	var all []tagged
	for _, image := range images {
		i := strings.LastIndexByte(image, ':')
		if i < 0 || path.Base(image[:i]) != repository {
			continue
		}
		// A tag such as 1.37.0-1 is a version and the build of its image.
		if v, err := version.ParseGeneric(strings.ReplaceAll(image[i+1:], "-", ".")); err == nil {
			all = append(all, tagged{image, v})
		}
	}
	slices.SortFunc(all, func(a, b tagged) int {
		switch {
		case b.at.LessThan(a.at):
			return -1
		case a.at.LessThan(b.at):
			return 1
		}
		return cmp.Compare(a.image, b.image)
	})
	var names []string
	for _, one := range all[:min(len(all), versions)] {
		names = append(names, one.image)
	}
	return names
}
