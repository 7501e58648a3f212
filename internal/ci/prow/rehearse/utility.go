package rehearse

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/prow/pkg/entrypoint"
	"sigs.k8s.io/prow/pkg/initupload"
	"sigs.k8s.io/prow/pkg/logrusutil"
	"sigs.k8s.io/prow/pkg/sidecar"
	"sigs.k8s.io/prow/pkg/version"
)

// Prow's pod utilities: the programs that decoration puts around a job.
const (
	Initupload = "initupload"
	Entrypoint = "entrypoint"
	Sidecar    = "sidecar"
)

// Utility plays one of Prow's pod utilities in this process, with Prow's own
// code, and returns its exit code. As in a pod, its options are in the
// environment. It handles signals itself.
func Utility(ctx context.Context, name string) (int, error) {
	variable := map[string]string{
		Initupload: initupload.JSONConfigEnvVar, Entrypoint: entrypoint.JSONConfigEnvVar, Sidecar: sidecar.JSONConfigEnvVar,
	}[name]
	if variable == "" {
		return 0, fmt.Errorf("unknown pod utility %q: use %s", name, strings.Join([]string{Initupload, Entrypoint, Sidecar}, ", "))
	}
	options := os.Getenv(variable)
	if options == "" {
		return 0, fmt.Errorf("%s: $%s is not set; 'op-readiness prow rehearse' sets it", name, variable)
	}
	version.Name = name // as its log calls it
	switch name {
	case Initupload:
		return playInitupload(options)
	case Entrypoint:
		return playEntrypoint(options)
	default:
		return playSidecar(ctx, options)
	}
}

// The functions below are the main functions of Prow's cmd/, which are not to
// be imported.

func playInitupload(options string) (int, error) {
	logrusutil.ComponentInit()
	o := initupload.NewOptions()
	if err := errors.Join(o.LoadConfig(options), o.Validate()); err != nil {
		return 0, fmt.Errorf("%s: options: %w", Initupload, err)
	}
	return 0, o.Run()
}

func playEntrypoint(options string) (int, error) {
	logrusutil.ComponentInit()
	o := entrypoint.NewOptions()
	if err := errors.Join(o.LoadConfig(options), o.Validate()); err != nil {
		return 0, fmt.Errorf("%s: options: %w", Entrypoint, err)
	}
	return o.Run(), nil
}

func playSidecar(ctx context.Context, options string) (int, error) {
	log, err := sidecar.LogSetup()
	if err != nil {
		return 0, fmt.Errorf("%s: setting up its log: %w", Sidecar, err)
	}
	defer os.Remove(log.Name())
	o := sidecar.NewOptions()
	if err := errors.Join(o.LoadConfig(options), o.Validate()); err != nil {
		return 0, fmt.Errorf("%s: options: %w", Sidecar, err)
	}
	failures, err := o.Run(ctx, log)
	if err != nil {
		return 0, fmt.Errorf("%s: reporting the job's status: %w", Sidecar, err)
	}
	if failures > 0 && o.EntryError {
		return 1, nil
	}
	return 0, nil
}
