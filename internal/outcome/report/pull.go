package report

import (
	"fmt"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/junit"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// pullContext is the JUnit context of images that were pulled before the tests.
const pullContext = "prepull"

// pullJUnit has a case for each image on each system.
func pullJUnit(run *result.Run) ([]junit.File, error) {
	var cases []junit.Case
	for _, p := range run.Pulls() {
		one := junit.Case{Name: pullName(&p), Time: p.Seconds}
		switch {
		case p.Skipped != "":
			one.Skipped = &junit.Detail{Body: "not pulled: " + short(p.Skipped, maxText)}
		case p.Problem != "":
			one.Failure = failure(errorType, "", short(p.Problem, maxText))
		}
		cases = append(cases, one)
	}
	files, err := junit.Split(pullContext, cases)
	if err != nil {
		return nil, fmt.Errorf("JUnit of images: %w", err)
	}
	return files, nil
}

func pullName(p *result.Pull) string {
	return fmt.Sprintf("prepull %s on %s", short(p.Image, maxText), short(p.System(), maxText))
}

// notPulled names the images that nodes could not pull before the tests.
func notPulled(run *result.Run) []string {
	var lines []string
	for _, p := range run.Pulls() {
		if p.Problem == "" {
			continue
		}
		if len(lines) == maxReasons {
			return append(lines, "… and more images that could not be pulled before the tests")
		}
		lines = append(lines, short(fmt.Sprintf("Not pulled before the tests: %s on %s: %s", p.Image, p.System(), p.Problem), maxText))
	}
	return lines
}
