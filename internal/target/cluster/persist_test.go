package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/cluster"
)

func TestRequestsAreMadeAgainThroughAnOutage(t *testing.T) {
	leases := schema.GroupResource{Resource: "leases"}
	unavailable, refused := apierrors.NewServiceUnavailable("starting"), apierrors.NewForbidden(leases, "x", nil)
	stopped := errors.New("nobody waits any longer")
	for _, test := range []struct {
		name    string
		answers []error // the last one is given for ever
		stop    time.Duration
		want    error
		tries   int // 0 is any number
		took    time.Duration
	}{
		{"an answer", []error{nil}, 0, nil, 1, 0},
		{"503 at first", []error{unavailable, nil}, 0, nil, 2, time.Second},
		{"cut connections at first", []error{io.ErrUnexpectedEOF, fmt.Errorf("wrapped: %w", unavailable), nil}, 0, nil, 3, 2 * time.Second},
		{"as late as the server asks", []error{apierrors.NewTooManyRequests("busy", 10), nil}, 0, nil, 2, 10 * time.Second},
		{"an answer of another kind", []error{runtime.NewNotRegisteredErrForKind("client", schema.GroupVersionKind{Kind: "HTML"})}, 0, nil, 1, 0},
		{"no", []error{refused}, 0, refused, 1, 0},
		{"no, after an outage", []error{unavailable, refused}, 0, refused, 2, time.Second},
		{"503 for ever", []error{unavailable}, 0, unavailable, 0, cluster.Patience},
		{"a server that asks for more than there is", []error{apierrors.NewTooManyRequests("busy", 3600)}, 0, nil, 1, cluster.Patience},
		{"503 until it is stopped", []error{unavailable}, 1500 * time.Millisecond, unavailable, 2, 1500 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if test.stop > 0 {
					time.AfterFunc(test.stop, func() { cancel(stopped) })
				}
				began, tries := time.Now(), 0
				err := cluster.Persist(ctx, func(context.Context) error {
					tries++
					return test.answers[min(tries, len(test.answers))-1]
				})
				if test.want == nil {
					test.want = test.answers[len(test.answers)-1]
				}
				if !errors.Is(err, test.want) || test.tries > 0 && tries != test.tries || time.Since(began) != test.took {
					t.Errorf("%v after %d tries in %s, want %v after %d in %s", err, tries, time.Since(began), test.want, test.tries, test.took)
				}
			})
		})
	}
}

// A server that stands still until time is up said something before.
func TestWhatTheServerSaidIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unavailable := apierrors.NewServiceUnavailable("starting")
		tries := 0
		err := cluster.Persist(t.Context(), func(ctx context.Context) error {
			if tries++; tries == 1 {
				return unavailable
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, unavailable) {
			t.Error(err)
		}
	})
}
