package judge

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// taking returns samples every ten seconds of somebody who takes so many cores.
func taking(cores ...float64) []CPUSample {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	samples := []CPUSample{{at, time.Minute}}
	for _, c := range cores {
		last := samples[len(samples)-1]
		samples = append(samples, CPUSample{last.Time.Add(10 * time.Second), last.Used + time.Duration(c*10*float64(time.Second))})
	}
	return samples
}

func TestCPUProblems(t *testing.T) {
	limit := CPU{Mean: 0.55, NearlyAlways: 0.65, AtLeast: 0.25}
	for what, c := range map[string]struct {
		samples []CPUSample
		want    string // of the problems, joined; "" for none
	}{
		"just the limit":     {taking(0.5, 0.5, 0.5), ""},
		"less, for a while":  {taking(0.5, 0.1, 0.5), ""},
		"too much":           {taking(1, 1, 1), "it took 1.00 cores on average of 30s, and at most 0.55 are allowed; it took 1.00 cores in the 95th percentile of 3 stretches, and at most 0.65 are allowed"},
		"too much for once":  {taking(0.4, 0.7, 0.4), "it took 0.70 cores in the 95th percentile of 3 stretches, and at most 0.65 are allowed"},
		"nothing":            {taking(0, 0, 0), "it took 0.00 cores on average of 30s, and without at least 0.25 nothing is shown of a limit"},
		"too few":            {taking(0.5, 0.5), "it was measured over 2 stretches of time, and 3 are needed"},
		"never":              {nil, "it was measured over 0 stretches of time, and 3 are needed"},
		"once":               {taking(), "it was measured over 0 stretches of time, and 3 are needed"},
		"started again":      {taking(0.5, 0.5, -1), "its time on CPUs went from 1m10s back to 1m0s: it was started again"},
		"the time goes back": {append(taking(0.5, 0.5, 0.5), taking()...), "its samples are not in the order of time"},
	} {
		if got := strings.Join(limit.Problems(c.samples, 3), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
	if got := (CPU{AtLeast: 0.8}).Problems(taking(2, 2, 2), 3); len(got) > 0 {
		t.Errorf("without a limit: %q", got)
	}
	// One in twenty may be too much, two may not.
	many := make([]float64, 40)
	for i := range many {
		many[i] = 0.4
	}
	many[3], many[7] = 0.9, 0.9
	if got := limit.Problems(taking(many...), 3); len(got) > 0 {
		t.Errorf("two of 40 stretches: %q", got)
	}
	many[9] = 0.9
	if got := limit.Problems(taking(many...), 3); len(got) != 1 {
		t.Errorf("three of 40 stretches: %q", got)
	}
}

func TestAddSample(t *testing.T) {
	var samples []CPUSample
	all := taking(0.5, 0.5)
	for _, i := range []int{0, 0, 1, 0, 1, 2, 2} {
		samples = AddSample(samples, all[i])
	}
	near := CPUSample{all[2].Time.Add(leastStretch - 1), all[2].Used}
	if samples = AddSample(samples, near); len(samples) != 3 || samples[0] != all[0] || samples[2] != all[2] {
		t.Errorf("%v", samples)
	}
}

func FuzzCPUProblems(f *testing.F) {
	f.Add(int64(10), int64(5), int64(10), int64(5), 2)
	f.Add(int64(0), int64(0), int64(0), int64(0), 0)
	f.Fuzz(func(t *testing.T, passed1, used1, passed2, used2 int64, fewest int) {
		at := time.Unix(0, 0)
		samples := []CPUSample{{Time: at}}
		samples = AddSample(samples, CPUSample{at.Add(time.Duration(passed1)), time.Duration(used1)})
		samples = AddSample(samples, CPUSample{at.Add(time.Duration(passed2)), time.Duration(used2)})
		limit := CPU{Mean: 0.55, AtLeast: 0.25}
		if problems := limit.Problems(samples, fewest); len(problems) > 0 {
			return
		}
		last := samples[len(samples)-1]
		if cores := float64(last.Used) / float64(last.Time.Sub(at)); len(samples) < 2 || cores > 0.551 || cores < 0.249 {
			t.Errorf("%v: %v cores are taken for a limit that holds", samples, cores)
		}
	})
}

func TestMemory(t *testing.T) {
	little, much := Taken{Amount: "64M"}, Taken{Amount: "512M", Exit: 1}
	for what, c := range map[string]struct {
		little, much Taken
		want         string
	}{
		"refused":           {little, much, ""},
		"killed":            {little, Taken{Amount: "512M", Killed: true}, ""},
		"succeeds":          {little, Taken{Amount: "512M"}, "taking 512M succeeded under a limit of 256Mi"},
		"little is refused": {Taken{Amount: "64M", Exit: 127, Said: "dd: not found"}, much, "taking 64M failed under a limit of 256Mi: exit code 127: dd: not found"},
		"little kills":      {Taken{Amount: "64M", Killed: true}, much, "taking 64M failed under a limit of 256Mi: the container was killed"},
	} {
		if got := strings.Join(Memory(c.little, c.much, "256Mi"), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

func TestMemoryFigures(t *testing.T) {
	limit := resource.MustParse("256Mi")
	if got := MemoryFigures(map[string]uint64{"workingSetBytes": 256 << 20, "usageBytes": 1}, limit); len(got) > 0 {
		t.Errorf("at the limit: %q", got)
	}
	got := MemoryFigures(map[string]uint64{"workingSetBytes": 300 << 20, "usageBytes": 512 << 20}, limit)
	want := "the kubelet reports usageBytes of 512Mi under a limit of 256Mi; the kubelet reports workingSetBytes of 300Mi under a limit of 256Mi"
	if strings.Join(got, "; ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestUnharmed(t *testing.T) {
	pod := func(change func(*v1.Pod)) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "sibling", UID: "1"}, Status: v1.PodStatus{
			Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{Name: "pause"}},
		}}
		change(p)
		return p
	}
	node := func(pressure v1.ConditionStatus) *v1.Node {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeMemoryPressure, Status: pressure, Message: "low"}, {Type: v1.NodeReady, Status: v1.ConditionTrue}}
		return n
	}
	calm := node(v1.ConditionFalse)
	for what, c := range map[string]struct {
		now  *v1.Pod
		node *v1.Node
		want string
	}{
		"as before": {pod(func(*v1.Pod) {}), calm, ""},
		"another":   {pod(func(p *v1.Pod) { p.UID = "2" }), calm, "pod sibling beside it was replaced"},
		"deleted":   {pod(func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), calm, "pod sibling beside it was replaced"},
		"evicted": {pod(func(p *v1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = v1.PodFailed, "Evicted", "low on memory"
		}), calm, "pod sibling beside it is Failed: Evicted low on memory"},
		"restarted":    {pod(func(p *v1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 2 }), calm, "container pause of pod sibling beside it was restarted 2 times"},
		"pressure":     {pod(func(*v1.Pod) {}), node(v1.ConditionTrue), "node n has MemoryPressure True: low"},
		"nobody knows": {pod(func(*v1.Pod) {}), node(v1.ConditionUnknown), "node n has MemoryPressure Unknown: low"},
	} {
		if got := strings.Join(Unharmed(pod(func(*v1.Pod) {}), c.now, c.node), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
