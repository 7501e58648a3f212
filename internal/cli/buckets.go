package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/intake"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

// bucketOptions say how the buckets are reached that results come from.
type bucketOptions struct {
	Endpoint  string
	Anonymous bool
}

func (o *bucketOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Endpoint, "endpoint", "", "URL of a GCS emulator or of a store that speaks S3 (default $STORAGE_EMULATOR_HOST for gs://)")
	f.BoolVar(&o.Anonymous, "anonymous", false, "use no credentials")
}

// options are those for the bucket of a URL.
func (o *bucketOptions) options(s *Surroundings) func(url string) bucket.Options {
	return func(url string) bucket.Options {
		return bucket.Options{Endpoint: endpointOf(s, o.Endpoint, url), Anonymous: o.Anonymous, Retry: bucket.Retry{
			Note: func(what string, err error, wait time.Duration) {
				fmt.Fprintf(s.Stderr, "%s: %v; trying again in %s\n", what, err, wait.Round(100*time.Millisecond))
			},
		}}
	}
}

// endpointOf is the URL of the store that has the bucket of a URL: the one that
// was given, or the emulator of the environment; "" for the provider's own.
func endpointOf(s *Surroundings, given, url string) string {
	if given == "" && strings.HasPrefix(url, bucket.GCS+"://") {
		given = s.Getenv("STORAGE_EMULATOR_HOST")
	}
	if given != "" && !strings.Contains(given, "://") {
		given = "http://" + given
	}
	return given
}

// sourceError gives an error of taking results in its exit code: what was named
// is wrong, or it could not be read.
func sourceError(ctx context.Context, err error) error {
	if usage := (*verdict.UsageError)(nil); errors.As(err, &usage) {
		return err
	}
	wrong := []error{intake.ErrRefused, intake.ErrNoResults, intake.ErrJob, bucket.ErrURL, bucket.ErrNotExist, bucket.ErrNoBucket}
	switch {
	case ctx.Err() != nil:
		return &exitError{code: verdict.ExitInterrupted, cause: err}
	case slices.ContainsFunc(wrong, func(e error) bool { return errors.Is(err, e) }):
		return usageErrorf("%w", err)
	}
	return &exitError{code: verdict.ExitInconclusive, cause: err}
}
