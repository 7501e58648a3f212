package probe

import (
	"errors"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Choose returns the newest agnhost, and the newest pause, of a list of images.
func Choose(images []string) (Images, error) {
	chosen := Images{Agnhost: newest(images, "agnhost"), Pause: newest(images, "pause")}
	if chosen.Agnhost == "" || chosen.Pause == "" {
		return Images{}, errors.New("e2e.test names no agnhost image, or no pause image")
	}
	return chosen, nil
}

func newest(images []string, name string) string {
	best, at := "", (*version.Version)(nil)
	for _, image := range images {
		i := strings.LastIndexByte(image, ':')
		if i < 0 || path.Base(image[:i]) != name {
			continue
		}
		v, err := version.ParseGeneric(image[i+1:])
		if err == nil && (at == nil || at.LessThan(v)) {
			best, at = image, v
		}
	}
	return best
}
