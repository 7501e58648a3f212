package kind

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
)

// images are the node images that were published for the kind that this program is
// built with, with the digests that its release notes give
// (https://github.com/kubernetes-sigs/kind/releases/tag/v0.33.0).
var images = map[string]string{
	"v1.34.11": "kindest/node:v1.34.11@sha256:44e222ee2132dab25ff87301682f89eb82c7880ea3a1bf543bfe9708fd08d67d",
	"v1.35.8":  "kindest/node:v1.35.8@sha256:07b2536e30b803ed61d1677a79df6115f798ce64c80f9e22f6ed45afd09323c0",
	"v1.36.4":  "kindest/node:v1.36.4@sha256:099e049362a1526b2db71494e1947aae99bd16290d7c895f2b7ea312e3cbfaed",
	"v1.37.0":  "kindest/node:v1.37.0@sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5",
}

// Versions returns the Kubernetes versions of which there is a published node image,
// oldest first.
func Versions() []string {
	return slices.SortedFunc(maps.Keys(images), semver.Compare)
}

// DefaultVersion is the one of [Versions] that has the minor version of the newest
// pinned Kubernetes.
func DefaultVersion() string {
	for _, version := range Versions() {
		if semver.MajorMinor(version) == semver.MajorMinor(binaries.Pinned) {
			return version
		}
	}
	return ""
}

// imageOf returns the node image of a Kubernetes version.
func imageOf(version string) (string, error) {
	if image, ok := images[version]; ok {
		return image, nil
	}
	return "", fmt.Errorf("kind published no node image of Kubernetes %s: use --kubernetes-version %s, or --set %s= with an image of your own, as 'kind build node-image %s' makes it",
		version, strings.Join(Versions(), ", "), Image, version)
}
