package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
)

// The tags of a cluster are the labels of a volume. Its name is the prefix and the
// cluster's name; after [Provider.Extend] also a dot and the expiry.
const (
	volumePrefix = "op-readiness-"
	labelOwner   = "op-readiness-owner"
	labelRun     = "op-readiness-run"
	// labelExpires is in Unix seconds.
	labelExpires = "op-readiness-expires"
)

// tags are what a volume's labels say of a cluster.
type tags struct {
	volume, name, owner, run string
	// expires is zero where the label does not say it.
	expires time.Time
}

func volumeName(name string) string { return volumePrefix + name }

func extendedName(name string, expires time.Time) string {
	return volumeName(name) + "." + strconv.FormatInt(expires.Unix(), 10)
}

// validTag tells whether a tag is one line of at most 255 bytes that can be shown.
func validTag(s string) bool {
	return len(s) <= 255 && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
}

// volume is what matters of a volume, as Docker, podman and nerdctl inspect it.
type volume struct {
	Name   string            `json:"Name"`
	Labels map[string]string `json:"Labels"`
}

// tags returns what the volume says of a cluster; false is that it says nothing. What is
// no tag as we write them is left out.
func (v *volume) tags() (tags, bool) {
	rest, ours := strings.CutPrefix(v.Name, volumePrefix)
	name, _, _ := strings.Cut(rest, ".")
	if _, owned := v.Labels[labelOwner]; !ours || !owned || provider.ValidateName(name) != nil {
		return tags{}, false
	}
	t := tags{volume: v.Name, name: name}
	if owner := v.Labels[labelOwner]; validTag(owner) {
		t.owner = owner
	}
	if run := v.Labels[labelRun]; validTag(run) {
		t.run = run
	}
	const year10000 = 253402300800 // what RFC 3339 cannot write is no time of ours
	if seconds, err := strconv.ParseInt(v.Labels[labelExpires], 10, 64); err == nil && seconds > 0 && seconds < year10000 {
		t.expires = time.Unix(seconds, 0).UTC()
	}
	return t, true
}

// volumes returns an engine's volumes, or those that a filter lets through.
func (e *engine) volumes(ctx context.Context, filter ...string) ([]volume, error) {
	for attempt := 1; ; attempt++ {
		names, err := e.lines(ctx, append([]string{"volume", "ls", "--quiet"}, filter...)...)
		if err != nil || len(names) == 0 {
			return nil, err
		}
		out, err := e.output(ctx, append([]string{"volume", "inspect"}, names...)...)
		if err != nil {
			if attempt < 3 && ctx.Err() == nil {
				continue // one went meanwhile
			}
			return nil, err
		}
		var all []volume
		if err := json.Unmarshal([]byte(out), &all); err != nil {
			return nil, fmt.Errorf("reading what %s says of volumes: %w", e.name, err)
		}
		return all, nil
	}
}

// tagged returns the tags of all our volumes, sorted by cluster, the one that expires
// first before the others of its cluster, and those without expiry last.
func (e *engine) tagged(ctx context.Context) ([]tags, error) {
	volumes, err := e.volumes(ctx, "--filter", "label="+labelOwner)
	var all []tags
	for i := range volumes {
		if t, ours := volumes[i].tags(); ours {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b tags) int {
		switch by := strings.Compare(a.name, b.name); {
		case by != 0:
			return by
		case a.expires.IsZero() || b.expires.IsZero():
			return b.expires.Compare(a.expires)
		default:
			return a.expires.Compare(b.expires)
		}
	})
	return all, err
}

// of returns the tags of one cluster.
func (e *engine) of(ctx context.Context, name string) ([]tags, error) {
	all, err := e.tagged(ctx)
	return slices.DeleteFunc(all, func(t tags) bool { return t.name != name }), err
}

// tag makes the volume of that name with the tags of a request.
func (e *engine) tag(ctx context.Context, volume string, r *provider.Request) error {
	_, err := e.output(ctx, "volume", "create",
		"--label", labelOwner+"="+r.Owner,
		"--label", labelRun+"="+r.Run,
		"--label", labelExpires+"="+strconv.FormatInt(r.Expires.Unix(), 10),
		volume)
	return err
}

// removeVolumes removes volumes; one that is gone is no error.
func (e *engine) removeVolumes(ctx context.Context, names ...string) error {
	var faults []error
	for _, name := range names {
		_, err := e.output(ctx, "volume", "rm", name)
		if err == nil {
			continue
		}
		there, listing := e.lines(ctx, "volume", "ls", "--quiet")
		if listing != nil || slices.Contains(there, name) {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// retag gives a cluster the tags of r. The new volume is there before the old one goes:
// after a kill between them the earlier expiry counts.
func (e *engine) retag(ctx context.Context, r *provider.Request) error {
	old, err := e.of(ctx, r.Name)
	if err != nil {
		return err
	}
	if len(old) == 0 {
		return fmt.Errorf("cluster %s has no volume with tags", r.Name)
	}
	name := extendedName(r.Name, r.Expires)
	if len(old) == 1 && old[0].expires.Equal(r.Expires) {
		return nil
	}
	if !slices.ContainsFunc(old, func(t tags) bool { return t.volume == name }) {
		if err := e.tag(ctx, name, r); err != nil {
			return err
		}
	}
	var others []string
	for _, t := range old {
		if t.volume != name {
			others = append(others, t.volume)
		}
	}
	return e.removeVolumes(ctx, others...)
}
