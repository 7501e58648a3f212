package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
)

// The Lease.
const (
	Namespace = "default"
	Name      = "op-readiness"
)

// Rule is the permission that the lock needs, by a Role in [Namespace].
func Rule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{coordinationv1.GroupName},
		Resources: []string{"leases"},
		Verbs:     []string{"get", "create", "update", "delete"},
	}
}

// edit reads the Lease, lets change say what it should be, and writes that, from
// the start again where somebody else was quicker. A change to nil leaves the
// Lease as it is, one to a record without members removes it.
func (l *Lock) edit(ctx context.Context, change func(*record) (*record, error)) error {
	for {
		again, err := l.tryEdit(ctx, change)
		switch {
		case again && ctx.Err() == nil:
			continue
		case apierrors.IsForbidden(err):
			rule := Rule()
			return fmt.Errorf("locking the cluster: %w: allow %s of leases.%s in namespace %s",
				err, strings.Join(rule.Verbs, ", "), coordinationv1.GroupName, Namespace)
		case err != nil && !errors.Is(err, ErrLost):
			return fmt.Errorf("locking the cluster by Lease %s/%s: %w", Namespace, Name, err)
		}
		return err
	}
}

// persist is edit for as long as an outage may last.
func (l *Lock) persist(ctx context.Context, change func(*record) (*record, error)) error {
	began := l.Clock.Now()
	for {
		err := l.edit(ctx, change)
		if !cluster.Away(err) || l.Clock.Now().Sub(began) >= l.Duration || l.Clock.Sleep(ctx, l.Poll) != nil {
			return err
		}
	}
}

func (l *Lock) tryEdit(ctx context.Context, change func(*record) (*record, error)) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.Interval)
	defer cancel()
	found, err := l.leases.Get(ctx, Name, metav1.GetOptions{})
	r := &record{}
	switch {
	case apierrors.IsNotFound(err):
		found = nil
	case err != nil:
		return false, err
	default:
		r = decode(found)
	}
	next, err := change(r)
	if err != nil || next == nil {
		return false, err
	}
	switch {
	case len(next.members) == 0:
		err = l.leases.Delete(ctx, Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &found.UID, ResourceVersion: &found.ResourceVersion},
		})
		again = apierrors.IsConflict(err) || apierrors.IsNotFound(err)
	case found == nil:
		fresh := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: Name}}
		if err := next.encode(fresh); err != nil {
			return false, err
		}
		_, err = l.leases.Create(ctx, fresh, metav1.CreateOptions{})
		again = apierrors.IsAlreadyExists(err)
	default:
		if err := next.encode(found); err != nil {
			return false, err
		}
		_, err = l.leases.Update(ctx, found, metav1.UpdateOptions{})
		again = apierrors.IsConflict(err) || apierrors.IsNotFound(err)
	}
	return again, err
}
