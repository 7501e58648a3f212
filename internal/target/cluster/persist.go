package cluster

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// Patience is how long an outage of the API server may last before a run gives
// something up for it: as long as the cluster lock lives without a renewal.
const Patience = 40 * time.Second

// persistPause is the time between two tries of [Persist] where the server does
// not ask for more.
const persistPause = time.Second

// Persist makes a request, and makes it again while the API server is away, for
// as long as [Patience]. It returns what the last try came to.
//
// A connection that was cut tells nothing of whether the server has done what it
// was asked: the request must be one that can be made twice, and who creates an
// object must know it for its own when it is there already.
func Persist(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	var last error
	for {
		err := request(ctx)
		if ctx.Err() != nil && last != nil && err != nil {
			return last // the server's answer, rather than that time is up
		}
		if last = err; !Away(err) {
			return err
		}
		pause := persistPause
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			pause = max(pause, time.Duration(seconds)*time.Second)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// Away reports whether a request to the API server failed because the server, or
// what is before it, could not answer for now: it was overloaded (429), failed
// (5xx), or the connection did not hold. What the server refuses is not an outage,
// nor is an answer of another kind than was asked for.
func Away(err error) bool {
	if runtime.IsNotRegisteredError(err) {
		return false
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	return err != nil
}
