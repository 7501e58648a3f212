package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

const (
	annotation = "op-readiness/lock"
	// schema is the version of the annotation's format.
	schema = 1
	// maxText bounds what is read from a Lease and shown.
	maxText = 512
	// maxDuration is the longest life without a renewal that is believed: nobody
	// is to be kept out for years by what a Lease claims.
	maxDuration = time.Hour
)

// record is what the Lease says.
type record struct {
	runID   string
	members []member

	// What follows is for a Lease that cannot be read.
	problem  error
	version  string // its resourceVersion
	duration time.Duration
}

// content is the annotation.
type content struct {
	Schema  int      `json:"schema"`
	Members []member `json:"members"`
}

// member is one process that works, or waits for other shards of its run.
type member struct {
	ID         string               `json:"id"` // unique for each [Lock]
	Shard      string               `json:"shard,omitempty"`
	Host       string               `json:"host,omitempty"`
	Phase      specs.Phase          `json:"phase"`
	Conditions result.RunConditions `json:"conditions,omitzero"`
	// Waiting says that the member waits for its group's turn.
	Waiting  bool      `json:"waiting,omitempty"`
	Since    time.Time `json:"since"`
	Renewed  time.Time `json:"renewed"`
	Renewals int       `json:"renewals"`
	Duration string    `json:"duration"`
}

// expiry is how long the member lives without a renewal.
func (m *member) expiry() time.Duration {
	d, _ := time.ParseDuration(m.Duration) // decode has checked it
	return d
}

func (m *member) group() Group { return Group{Phase: m.Phase, Conditions: m.Conditions} }

// find returns the member with the given id, or nil.
func (r *record) find(id string) *member {
	for i := range r.members {
		if r.members[i].ID == id {
			return &r.members[i]
		}
	}
	return nil
}

// decode reads a Lease that anybody may have written. One that it cannot read
// becomes a record with a problem.
func decode(l *coordinationv1.Lease) *record {
	r := &record{version: l.ResourceVersion}
	if s := l.Spec.LeaseDurationSeconds; s != nil && time.Duration(*s)*time.Second <= maxDuration {
		r.duration = time.Duration(*s) * time.Second
	}
	if id := l.Spec.HolderIdentity; id != nil {
		r.runID = *id
	}
	text, ok := l.Annotations[annotation]
	if !ok {
		r.problem = fmt.Errorf("it has no annotation %s", annotation)
		return r
	}
	var c content
	err := json.Unmarshal([]byte(text), &c)
	switch {
	case c.Schema > schema:
		r.problem = fmt.Errorf("a newer version of op-readiness wrote it (schema %d, this one reads %d)", c.Schema, schema)
	case err != nil:
		r.problem = fmt.Errorf("annotation %s: %w", annotation, err)
	default:
		if err := check(r.runID, &c); err != nil {
			r.problem = fmt.Errorf("annotation %s: %w", annotation, err)
		}
	}
	if r.problem == nil {
		r.members = c.Members
	}
	return r
}

func check(runID string, c *content) error {
	if c.Schema != schema {
		return fmt.Errorf("schema %d is unknown", c.Schema)
	}
	if runID == "" {
		return errors.New("spec.holderIdentity names no run")
	}
	if len(c.Members) == 0 {
		return errors.New("it names no member")
	}
	ids := map[string]bool{}
	for i := range c.Members {
		m := &c.Members[i]
		for _, text := range []string{runID, m.ID, m.Shard, m.Host, m.Conditions.String()} {
			if !showable(text) {
				return fmt.Errorf("member %d has a text that is too long or cannot be shown", i+1)
			}
		}
		if m.ID == "" || ids[m.ID] {
			return fmt.Errorf("member %d has no id of its own", i+1)
		}
		ids[m.ID] = true
		if err := (Group{Phase: m.Phase}).validate(); err != nil {
			return fmt.Errorf("member %d: %w", i+1, err)
		}
		if d, err := time.ParseDuration(m.Duration); err != nil || d <= 0 || d > maxDuration {
			return fmt.Errorf("member %d: %.40q is not a duration up to %s", i+1, m.Duration, maxDuration)
		}
		// Members are compared with ==, which needs one location.
		m.Since, m.Renewed = m.Since.UTC(), m.Renewed.UTC()
	}
	return nil
}

func showable(text string) bool {
	for _, r := range text {
		if !strconv.IsPrint(r) {
			return false
		}
	}
	return len(text) <= maxText
}

// encode writes the record, which has members, into a Lease.
func (r *record) encode(l *coordinationv1.Lease) error {
	data, err := json.Marshal(content{Schema: schema, Members: r.members})
	if err != nil {
		return fmt.Errorf("encoding the cluster lock: %w", err)
	}
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, annotation, string(data))
	metav1.SetMetaDataLabel(&l.ObjectMeta, "app.kubernetes.io/managed-by", "op-readiness")
	acquired, renewed, expiry := r.members[0].Since, r.members[0].Renewed, r.members[0].expiry()
	for _, m := range r.members[1:] {
		if m.Since.Before(acquired) {
			acquired = m.Since
		}
		if m.Renewed.After(renewed) {
			renewed = m.Renewed
		}
		expiry = max(expiry, m.expiry())
	}
	seconds := int32(math.Ceil(expiry.Seconds()))
	l.Spec.HolderIdentity = &r.runID
	l.Spec.LeaseDurationSeconds = &seconds
	l.Spec.AcquireTime = &metav1.MicroTime{Time: acquired}
	l.Spec.RenewTime = &metav1.MicroTime{Time: renewed}
	return nil
}

// observations tell the living from the dead by one clock: since when what was
// seen of a member, or of a Lease that cannot be read, is the same.
type observations struct {
	members    map[string]seen
	unreadable seen // under its version as the id
}

type seen struct {
	member  member
	at      time.Time
	changed bool // since it was first seen
}

// note takes in what is seen at a moment that is not before the record was
// read, and returns the members in the order of the record, living and dead.
func (o *observations) note(r *record, now time.Time) (living, dead []member) {
	before := o.members
	o.members = map[string]seen{}
	for _, m := range r.members {
		s, known := before[m.ID]
		if !known || s.member != m {
			s = seen{member: m, at: now, changed: known}
		}
		o.members[m.ID] = s
		if now.Sub(s.at) >= m.expiry() {
			dead = append(dead, m)
		} else {
			living = append(living, m)
		}
	}
	return living, dead
}

// unreadableFor is how long a Lease that cannot be read has been the same.
func (o *observations) unreadableFor(r *record, now time.Time) time.Duration {
	if o.unreadable.at.IsZero() || o.unreadable.member.ID != r.version {
		o.unreadable = seen{member: member{ID: r.version}, at: now}
	}
	return now.Sub(o.unreadable.at)
}

// stale reports whether all the members look dead by their own account. Clocks
// of machines differ, so that is a reason to look longer, and nothing else.
func (o *observations) stale(members []member, now time.Time) bool {
	return !slices.ContainsFunc(members, func(m member) bool {
		return o.members[m.ID].changed || now.Sub(m.Renewed) < m.expiry()
	})
}
