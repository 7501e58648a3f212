package rehearse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mount is a path in a container, and the folder that stands for it.
type mount struct{ inside, outside string }

// mounts translate the paths of one container.
type mounts []mount

func newMounts(all []mount) mounts {
	all = slices.Clone(all)
	for i := range all {
		all[i].inside = path.Clean(all[i].inside)
	}
	// The longest first: a volume may be mounted within another.
	slices.SortStableFunc(all, func(a, b mount) int { return len(b.inside) - len(a.inside) })
	return all
}

// inPath reports whether a character before or behind a path belongs to it.
func inPath(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.-~", c) >= 0 || c >= 0x80
}

// text replaces, wherever a text names a path in one of the mounts, the mount's
// path by that of its folder.
func (m mounts) text(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		if found, ok := m.at(s, i); ok {
			out.WriteString(found.outside)
			i += len(found.inside)
			continue
		}
		out.WriteByte(s[i])
		i++
	}
	return out.String()
}

// at returns the mount whose path stands at s[i:].
func (m mounts) at(s string, i int) (mount, bool) {
	if s[i] != '/' || i > 0 && (inPath(s[i-1]) || strings.IndexByte("/})", s[i-1]) >= 0) {
		return mount{}, false
	}
	for _, one := range m {
		end := i + len(one.inside)
		if strings.HasPrefix(s[i:], one.inside) && (end == len(s) || !inPath(s[end])) {
			return one, true
		}
	}
	return mount{}, false
}

// file returns what stands for a path, and whether it is in one of the mounts.
func (m mounts) file(p string) (string, bool) {
	p = path.Clean(p)
	for _, one := range m {
		if p == one.inside {
			return one.outside, true
		}
		if rest, ok := strings.CutPrefix(p, one.inside+"/"); ok {
			return filepath.Join(one.outside, filepath.FromSlash(rest)), true
		}
	}
	return "", false
}

// options translates the options of a pod utility, which are JSON, and leaves
// fields of the given names out.
func (m mounts) options(text string, without ...string) (string, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber() // durations are large integers
	var value any
	if err := decoder.Decode(&value); err != nil {
		return "", fmt.Errorf("options of a pod utility: %w", err)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(m.walk(value, without)); err != nil {
		return "", fmt.Errorf("options of a pod utility: %w", err)
	}
	return strings.TrimSpace(out.String()), nil
}

func (m mounts) walk(value any, without []string) any {
	switch v := value.(type) {
	case string:
		return m.text(v)
	case []any:
		for i := range v {
			v[i] = m.walk(v[i], without)
		}
	case map[string]any:
		for key := range v {
			if slices.Contains(without, key) {
				delete(v, key)
			} else {
				v[key] = m.walk(v[key], without)
			}
		}
	}
	return value
}
