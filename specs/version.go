package specs

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
)

// Version is a Kubernetes version. Patch is -1 where the text names none.
type Version struct {
	Major, Minor, Patch int
}

var versionPattern = regexp.MustCompile(`^v?(\d{1,3})\.(\d{1,3})(?:\.(\d{1,4}))?\+?(?:[-+][0-9A-Za-z.+-]*)?$`)

// ParseVersion reads a version as clusters and people write it: v1.36.3,
// 1.36, 1.36+, 1.36.3-gke.100.
func ParseVersion(text string) (Version, error) {
	m := versionPattern.FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("%q is not a Kubernetes version: write it as 1.36 or v1.36.3", text)
	}
	v := Version{Patch: -1}
	v.Major, _ = strconv.Atoi(m[1])
	v.Minor, _ = strconv.Atoi(m[2])
	if m[3] != "" {
		v.Patch, _ = strconv.Atoi(m[3])
	}
	return v, nil
}

// MinorString is the version without its patch, such as "1.36".
func (v Version) MinorString() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// String is the version as far as it is known, such as "1.36.3" or "1.36".
func (v Version) String() string {
	if v.Patch < 0 {
		return v.MinorString()
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// Compare orders versions; the patch counts last, an unknown one is lowest.
func (v Version) Compare(w Version) int {
	return cmp.Or(v.compareMinor(w), cmp.Compare(v.Patch, w.Patch))
}

func (v Version) compareMinor(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor))
}

// Contains reports whether the range holds v. Ends that are not versions hold
// nothing.
func (r VersionRange) Contains(v Version) bool {
	if r.From != "" {
		from, err := ParseVersion(r.From)
		if err != nil || v.compareMinor(from) < 0 {
			return false
		}
	}
	if r.To != "" {
		to, err := ParseVersion(r.To)
		if err != nil || v.compareMinor(to) > 0 {
			return false
		}
	}
	return true
}

// String is the range for people: "1.35 and later", "1.30 to 1.34", "all".
func (r VersionRange) String() string {
	switch {
	case r.From == "" && r.To == "":
		return "all"
	case r.To == "":
		return r.From + " and later"
	case r.From == "":
		return "up to " + r.To
	case r.From == r.To:
		return r.From
	}
	return r.From + " to " + r.To
}
