package scratch

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLeftOver(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		name, limit string
		age         time.Duration
		want        bool
	}{
		{"in use", "60", time.Minute, false},
		{"its process is still removing it", "60", 2 * time.Minute, false},
		{"its process was killed", "60", 4 * time.Minute, true},
		{"a long limit", "3600", 30 * time.Minute, false},
		{"no limit is the default, young", "", DefaultLimit, false},
		{"no limit is the default, old", "", DefaultLimit + 3*time.Minute, true},
		{"a limit that would never end", "999999999", DefaultLimit + 3*time.Minute, true},
		{"a limit before its beginning", "-9999", time.Minute, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ns := (&Options{Purpose: "probe", ID: "x", Limit: time.Minute}).namespace()
			ns.Annotations["op-readiness/probe-seconds"] = tt.limit
			ns.CreationTimestamp = metav1.NewTime(now.Add(-tt.age))
			if got := leftOver(ns, "probe", now); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
