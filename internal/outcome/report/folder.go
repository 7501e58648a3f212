package report

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// WriteFolder writes what a finished run leaves in its results folder beside
// its events: JUnit, metadata, and the manifest with what the run came to.
// JUnit of an earlier attempt is replaced.
func WriteFolder(folder *result.Folder, run *result.Run, j *verdict.Judgement, now time.Time) error {
	files, err := JUnit(j)
	if err != nil {
		return err
	}
	pulls, err := pullJUnit(run)
	if err != nil {
		return err
	}
	files = append(files, pulls...)
	written := map[string]bool{}
	for _, f := range files {
		if err := folder.WriteFile(f.Name, f.Data); err != nil {
			return err
		}
		written[f.Name] = true
	}
	entries, err := os.ReadDir(folder.Dir())
	if err != nil {
		return fmt.Errorf("looking for JUnit of an earlier attempt: %w", err)
	}
	for _, e := range entries {
		if old, _ := filepath.Match("junit_*.xml", e.Name()); !old || written[e.Name()] {
			continue
		}
		if err := os.Remove(folder.Path(e.Name())); err != nil {
			return fmt.Errorf("removing JUnit of an earlier attempt: %w", err)
		}
	}
	if err := folder.WriteJSON(result.MetadataFile, Metadata(run, j)); err != nil {
		return err
	}
	m := *run.Manifest
	code := j.ExitCode()
	m.Finished, m.Interrupted, m.OutOfTime = now, j.Interrupted, run.OutOfTime
	m.Scope, m.Verdict, m.ExitCode = j.Scope.String(), string(j.Verdict), &code
	m.Outcomes = map[string]int{}
	for o, n := range j.Outcomes {
		m.Outcomes[string(o)] = n
	}
	return folder.WriteJSON(result.ManifestFile, &m)
}

// Metadata is what becomes the metadata of TestGrid's finished.json. All
// values are strings: TestGrid makes column headers of no others.
func Metadata(run *result.Run, j *verdict.Judgement) map[string]string {
	windows, runtimes, networks := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range run.Manifests() {
		for _, n := range m.Cluster.Networks {
			networks[n] = true
		}
		for i := range m.Cluster.Nodes {
			n := &m.Cluster.Nodes[i]
			if n.OS != specs.Windows {
				continue
			}
			build := n.WindowsBuild
			if n.Simulated {
				build += " (simulated)"
			}
			windows[strings.TrimSpace(build)] = true
			runtimes[n.ContainerRuntime] = true
		}
	}
	delete(windows, "")
	delete(runtimes, "")
	join := func(set map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(set)), ", ") }
	metadata := map[string]string{
		"kubernetes-version": run.Manifest.Cluster.ServerVersion,
		"windows-version":    join(windows),
		"container-runtime":  join(runtimes),
		"verdict":            j.Words(),
		"scope":              j.Scope.String(),
		"requirements":       j.Counts.String(),
		"run-id":             run.Manifest.RunID,
		"op-readiness":       run.Manifest.ToolVersion,
	}
	if len(networks) > 0 {
		metadata["cni"] = join(networks)
	}
	if commit := run.Manifest.Source.Commit; commit != "" {
		metadata["Commit"] = commit // the spelling that TestGrid knows
	}
	return metadata
}
