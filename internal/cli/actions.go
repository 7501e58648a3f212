package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/show/actions"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/preflight"
)

// tellOutputs hands what a run came to on to the next steps of a workflow.
func tellOutputs(s *Surroundings, run *result.Run, j *verdict.Judgement) error {
	path := s.Getenv("GITHUB_OUTPUT")
	if s.Getenv("GITHUB_ACTIONS") != "true" || path == "" {
		return nil
	}
	return actions.WriteOutputs(path, []actions.Output{
		{Name: "verdict", Value: string(j.Verdict)},
		{Name: "proven", Value: strconv.Itoa(j.Counts.Proven)},
		{Name: "total", Value: strconv.Itoa(j.Counts.Total)},
		{Name: "rerun", Value: strconv.FormatBool(j.RerunHelps(run))},
	})
}

// annotate writes annotations with write: to the file that the action keeps for
// them, as the runner takes no command from what it runs; else to w, the log.
func annotate(s *Surroundings, w io.Writer, write func(io.Writer) error) error {
	path := s.Getenv("OP_READINESS_ANNOTATIONS")
	if path == "" {
		return write(w)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing annotations: %w", err)
	}
	return errors.Join(write(file), file.Close())
}

// annotateFindings writes annotations of a preflight: an error for each finding
// that keeps the cluster from being judged ready, a warning for each warning.
func annotateFindings(w io.Writer, r *preflight.Report) error {
	var annotations []actions.Annotation
	for i := range r.Findings {
		f := &r.Findings[i]
		level := actions.Warning
		switch {
		case f.Blocks():
			level = actions.Error
		case f.Status != preflight.Warning:
			continue
		}
		text := f.Found
		if f.Fix != "" {
			text += "\nFix: " + f.Fix
		}
		annotations = append(annotations, actions.Annotation{Level: level, Title: "preflight " + f.ID, Text: text})
	}
	return actions.Annotate(w, annotations)
}

// tellFindings writes the findings of a run's preflight in short.
func tellFindings(s *Surroundings, r *preflight.Report) error {
	if err := r.WriteShort(s.Stderr); err != nil {
		return fmt.Errorf("writing the preflight's findings: %w", err)
	}
	if s.Getenv("GITHUB_ACTIONS") != "true" {
		return nil
	}
	if err := annotate(s, s.Stderr, func(w io.Writer) error { return annotateFindings(w, r) }); err != nil {
		return fmt.Errorf("writing annotations: %w", err)
	}
	return nil
}
