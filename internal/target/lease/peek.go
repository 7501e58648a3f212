package lease

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
)

// Peek looks who has the cluster, and changes nothing; nil says nobody. Whether
// a holder still lives, one look cannot tell.
func Peek(ctx context.Context, client kubernetes.Interface) (*HeldError, error) {
	r, err := look(ctx, client)
	if r == nil || err != nil {
		return nil, err
	}
	if r.problem != nil {
		return &HeldError{Unreadable: r.problem, Expiry: r.duration}, nil
	}
	return newHeldError(r.runID, false, r.members), nil
}

// look reads the Lease; nil says that there is none.
func look(ctx context.Context, client kubernetes.Interface) (*record, error) {
	found, err := client.CoordinationV1().Leases(Namespace).Get(ctx, Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the cluster lock, Lease %s/%s: %w", Namespace, Name, err)
	}
	return decode(found), nil
}

// Living returns the IDs ([Lock.ID]) of the members that may be at work, for a
// process that does without the lock. One look cannot tell a member that died
// from one that is late, and clocks differ: whoever has been silent for less than
// twice its time counts. A Lease that cannot be read is an error.
func Living(ctx context.Context, client kubernetes.Interface, now time.Time) ([]string, error) {
	var r *record
	err := cluster.Persist(ctx, func(ctx context.Context) (err error) {
		r, err = look(ctx, client)
		return err
	})
	if r == nil || err != nil {
		return nil, err
	}
	if r.problem != nil {
		return nil, fmt.Errorf("reading the cluster lock, Lease %s/%s: %w", Namespace, Name, r.problem)
	}
	var ids []string
	for i := range r.members {
		if m := &r.members[i]; now.Sub(m.Renewed) < 2*m.expiry() {
			ids = append(ids, m.ID)
		}
	}
	return ids, nil
}

// Who says who has the cluster, without what to do about it.
func (e *HeldError) Who() string { return e.who() }

// Late reports whether the holder has not said for longer than it is given that
// it lives. Clocks of machines differ, so that is a hint.
func (e *HeldError) Late(now time.Time) bool {
	return e.Unreadable == nil && now.Sub(e.Renewed) > e.Expiry
}
