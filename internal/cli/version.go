package cli

import "runtime/debug"

// released is the version of a release's binary, which scripts/release.sh sets when
// it links: the binary is built before there is a tag.
var released string

// toolVersion is this program's version: the release, or what the Go toolchain
// recorded when it was built, a tag or the commit.
func toolVersion() string {
	if released != "" {
		return released
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "-modified"
		}
	}
	switch {
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	case revision != "":
		return "devel-" + revision + modified
	default:
		return "devel"
	}
}
