package lease

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

const valid = `{"id":"a","phase":"parallel","since":"2026-01-01T00:00:00+02:00","renewed":"2026-01-01T00:00:00+02:00","renewals":3,"duration":"40s"}`

func written(runID string, annotations map[string]string) *coordinationv1.Lease {
	l := &coordinationv1.Lease{}
	l.Annotations = annotations
	l.Spec.HolderIdentity = &runID
	return l
}

func TestDecode_whatCannotBeRead(t *testing.T) {
	for _, test := range []struct{ name, runID, annotation, problem string }{
		{"nothing", "run", "", "unexpected end of JSON input"},
		{"not JSON", "run", "members", "invalid character"},
		{"null", "run", "null", "schema 0 is unknown"},
		{"another shape", "run", `[]`, "cannot unmarshal array"},
		{"no schema", "run", `{"members":[` + valid + `]}`, "schema 0 is unknown"},
		{"newer", "run", `{"schema":9,"members":[` + valid + `]}`, "a newer version of op-readiness wrote it (schema 9, this one reads 1)"},
		{"newer, of another shape", "run", `{"schema":9,"members":"none"}`, "a newer version"},
		{"no run", "", `{"schema":1,"members":[` + valid + `]}`, "spec.holderIdentity names no run"},
		{"no members", "run", `{"schema":1}`, "it names no member"},
		{"null member", "run", `{"schema":1,"members":[null]}`, "member 1 has no id of its own"},
		{"one member twice", "run", `{"schema":1,"members":[` + valid + `,` + valid + `]}`, "member 2 has no id of its own"},
		{"unknown phase", "run", `{"schema":1,"members":[` + strings.Replace(valid, "parallel", "never", 1) + `]}`, `member 1: phase "never"`},
		{"no duration", "run", `{"schema":1,"members":[` + strings.Replace(valid, "40s", "", 1) + `]}`, `member 1: "" is not a duration`},
		{"negative duration", "run", `{"schema":1,"members":[` + strings.Replace(valid, "40s", "-1s", 1) + `]}`, `member 1: "-1s" is not a duration`},
		{"endless duration", "run", `{"schema":1,"members":[` + strings.Replace(valid, "40s", "9999999999h", 1) + `]}`, `is not a duration up to 1h`},
		{"no time", "run", `{"schema":1,"members":[` + strings.Replace(valid, "2026", "soon", 1) + `]}`, "parsing time"},
		{"a log command in the run's id", "run\n::error::x", `{"schema":1,"members":[` + valid + `]}`, "member 1 has a text that is too long or cannot be shown"},
		{"an escape sequence in an id", "run", `{"schema":1,"members":[` + strings.Replace(valid, `"a"`, `"\u001b[2J"`, 1) + `]}`, "cannot be shown"},
		{"a long id", strings.Repeat("r", maxText+1), `{"schema":1,"members":[` + valid + `]}`, "too long"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := decode(written(test.runID, map[string]string{annotation: test.annotation}))
			if r.problem == nil || !strings.Contains(r.problem.Error(), test.problem) {
				t.Errorf("problem %v, want %q", r.problem, test.problem)
			}
			if len(r.members) > 0 || !showable(r.problem.Error()) {
				t.Errorf("decoded %+v", r)
			}
		})
	}
	r := decode(&coordinationv1.Lease{})
	if r.problem == nil || r.problem.Error() != "it has no annotation op-readiness/lock" {
		t.Errorf("an empty Lease has problem %v", r.problem)
	}
}

func TestDecode_whatEncodeWrote(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	want := &record{runID: "run", members: []member{
		{ID: "a", Shard: "1/2", Host: "host", Phase: specs.Parallel, Conditions: result.RunConditions{Steer: specs.Windows, SteerPods: "^client$"}, Since: at.Add(time.Hour), Renewed: at.Add(time.Hour), Renewals: 2, Duration: "1.5s"},
		{ID: "b", Phase: specs.Serial, Waiting: true, Since: at, Renewed: at.Add(2 * time.Hour), Duration: "500ms"},
	}}
	l := &coordinationv1.Lease{}
	if err := want.encode(l); err != nil {
		t.Fatal(err)
	}
	if !l.Spec.AcquireTime.Time.Equal(at) || !l.Spec.RenewTime.Time.Equal(at.Add(2*time.Hour)) || *l.Spec.LeaseDurationSeconds != 2 {
		t.Errorf("spec %+v", l.Spec)
	}
	got := decode(l)
	want.duration = 2 * time.Second
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(record{})); diff != "" {
		t.Error(diff)
	}
}

func TestObservations_timesInOtherZonesAreNoChange(t *testing.T) {
	var o observations
	now := time.Now()
	l := written("run", map[string]string{annotation: `{"schema":1,"members":[` + valid + `]}`})
	for _, test := range []struct {
		after time.Duration
		dead  int
	}{{0, 0}, {40*time.Second - 1, 0}, {40 * time.Second, 1}} {
		living, dead := o.note(decode(l), now.Add(test.after))
		if len(dead) != test.dead || len(living)+len(dead) != 1 {
			t.Errorf("after %s %d of %d are dead, want %d", test.after, len(dead), len(living)+len(dead), test.dead)
		}
	}
}
