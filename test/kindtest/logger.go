package kindtest

import (
	"fmt"
	"testing"

	"sigs.k8s.io/kind/pkg/log"
)

// Logger returns what writes kind's messages to the test's log; those that begin or
// end a step, and no details.
func Logger(t *testing.T) log.Logger { return logger{t} }

type logger struct{ t *testing.T }

func (l logger) say(message string) { l.t.Log("kind: " + message) }

// Warn is kind's interface.
func (l logger) Warn(message string) { l.say(message) }

// Warnf is kind's interface.
func (l logger) Warnf(format string, args ...any) { l.say(fmt.Sprintf(format, args...)) }

// Error is kind's interface.
func (l logger) Error(message string) { l.say(message) }

// Errorf is kind's interface.
func (l logger) Errorf(format string, args ...any) { l.say(fmt.Sprintf(format, args...)) }

// V is kind's interface.
func (l logger) V(level log.Level) log.InfoLogger {
	if level > 0 {
		return log.NoopInfoLogger{}
	}
	return l
}

// Info is kind's interface.
func (l logger) Info(message string) { l.say(message) }

// Infof is kind's interface.
func (l logger) Infof(format string, args ...any) { l.say(fmt.Sprintf(format, args...)) }

// Enabled is kind's interface.
func (l logger) Enabled() bool { return true }
