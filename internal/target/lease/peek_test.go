package lease

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

func TestLivingAreThoseThatSpokeLately(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	text, err := json.Marshal(content{Schema: schema, Members: []member{
		{ID: "alive", Phase: specs.Parallel, Since: now.Add(-time.Hour), Renewed: now.Add(-10 * time.Second), Duration: "30s"},
		{ID: "late", Phase: specs.Parallel, Since: now.Add(-time.Hour), Renewed: now.Add(-50 * time.Second), Duration: "30s"},
		{ID: "dead", Phase: specs.Parallel, Since: now.Add(-time.Hour), Renewed: now.Add(-time.Minute), Duration: "30s"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	run := "r"
	held := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Name, Annotations: map[string]string{annotation: string(text)}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &run},
	}
	got, err := Living(t.Context(), fake.NewSimpleClientset(held), now)
	if err != nil || !slices.Equal(got, []string{"alive", "late"}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := Living(t.Context(), fake.NewSimpleClientset(), now); err != nil || len(got) != 0 {
		t.Errorf("no Lease: %q, %v", got, err)
	}
	held.Annotations[annotation] = `{"schema": 99}`
	if _, err := Living(t.Context(), fake.NewSimpleClientset(held), now); err == nil {
		t.Error("who lives by a Lease that cannot be read is said to be known")
	}
}
