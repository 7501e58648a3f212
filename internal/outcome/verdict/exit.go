package verdict

import "fmt"

// The exit codes of op-readiness. They mean the same for every command; when
// several hold, the first of [ExitInterrupted], [ExitUsage], [ExitNotReady],
// [ExitInconclusive] is the one returned.
const (
	// ExitReady says that everything in scope is ready, or that the command
	// did what it was asked to.
	ExitReady = 0
	// ExitNotReady says that something that gates readiness failed.
	ExitNotReady = 1
	// ExitUsage says that flags, configuration or spec files are wrong.
	ExitUsage = 2
	// ExitInconclusive says that something that gates readiness is unproven,
	// not tested or in error, or that the infrastructure failed.
	ExitInconclusive = 3
	// ExitInterrupted says that a signal ended the run early.
	ExitInterrupted = 130
)

// UsageError says that what was asked for is wrong: flags, a configuration, or
// files and places that were named. The command that it ends has [ExitUsage].
type UsageError struct{ cause error }

// UsageErrorf makes a [UsageError], as [fmt.Errorf] makes an error.
func UsageErrorf(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

func (e *UsageError) Error() string { return e.cause.Error() }
func (e *UsageError) Unwrap() error { return e.cause }
