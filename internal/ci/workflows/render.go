package workflows

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/generated"
)

// Folder is where GitHub finds workflows in a repository.
const Folder = ".github/workflows"

// Render makes the workflows of a configuration, sorted by name. One without a
// section github is an error, [config.Problems].
func Render(c *config.Config) ([]generated.File, error) {
	if c.GitHub == nil {
		return nil, config.Problems{c.Problem("", "has no section github, so there are no workflows: add one, see 'op-readiness config schema'")}
	}
	var files []generated.File
	for _, f := range []struct {
		name string
		make func(*config.Config) *workflow
	}{
		{"comment", commenter},
		{"pull-requests", pullRequests},
		{"reap", reaper},
		{"scheduled", scheduled},
	} {
		file := generated.File{Name: c.Name + "-" + f.name + ".yml"}
		if w := f.make(c); w != nil {
			var err error
			if file.Data, err = marshal(w, c.Path()); err != nil {
				return nil, fmt.Errorf("writing %s: %w", file.Name, err)
			}
		}
		files = append(files, file)
	}
	return files, nil
}

// marshal writes a workflow as people write them: "on" without quotes, which
// GitHub's reader of YAML does not need.
func marshal(w *workflow, source string) ([]byte, error) {
	var n yaml.Node
	if err := n.Encode(w); err != nil {
		return nil, err
	}
	for i := 0; i < len(n.Content); i += 2 {
		n.Content[i].Style = 0
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Generated from %s by 'op-readiness generate workflows'. DO NOT EDIT.\n", path.Base(strings.ReplaceAll(source, `\`, "/")))
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	err := errors.Join(enc.Encode(&n), enc.Close())
	return out.Bytes(), err
}

// pullRequests tests the cells of github.pullRequests; nil without them.
func pullRequests(c *config.Config) *workflow {
	p := c.GitHub.PullRequests
	if p == nil {
		return nil
	}
	w := &workflow{
		Name: c.GitHub.Workflow,
		On:   on{PullRequest: &pullRequest{Branches: p.Branches, Paths: p.Paths}},
		// A push makes the run of the commit before it worthless.
		Concurrency: concurrency{Group: "${{ github.workflow }}-${{ github.event.pull_request.number }}", CancelInProgress: true},
	}
	for _, cell := range c.PullRequestCells() {
		j := run(c, cell)
		if j.Secrets != nil {
			// GitHub gives no secret to a pull request from a fork, so there is no cluster.
			j.If = "github.event.pull_request.head.repo.full_name == github.repository"
		}
		w.add(cell, j)
	}
	return w
}

// scheduled tests the cells of github.scheduled by the clock, or one of them by
// hand; nil without them.
func scheduled(c *config.Config) *workflow {
	if c.GitHub.Scheduled == nil {
		return nil
	}
	cells := c.ScheduledCells()
	choice := &cellChoice{Description: "The cell to test", Type: "choice", Default: allCells, Options: []string{allCells}}
	for _, cell := range cells {
		choice.Options = append(choice.Options, cell.Title)
	}
	w := &workflow{
		Name: c.GitHub.Workflow + ": scheduled",
		On: on{
			Schedule: []cron{{Cron: c.GitHubCron()}},
			Dispatch: &dispatch{Inputs: inputs{Cell: choice}},
		},
		Concurrency: concurrency{Group: "${{ github.workflow }}-${{ inputs.cell || '" + allCells + "' }}"},
	}
	for _, cell := range cells {
		j := run(c, cell)
		j.If = fmt.Sprintf("github.event_name == 'schedule' || inputs.cell == '%s' || inputs.cell == '%s'", allCells, cell.Title)
		if c.GitHub.Publish != nil {
			j.Permissions.IDToken = "write" // to be let into the bucket
			j.With = append(j.With, publish(c, cell)...)
		}
		w.add(cell, j)
	}
	return w
}

const allCells = "all"

// run is the job that tests a cell.
func run(c *config.Config, cell config.Cell) *job {
	settings := c.GitHubSettingsFor(cell)
	j := &job{
		Name: cell.Title,
		Uses: uses(c, "readiness.yml"),
		With: values{{"name", artifact(c, cell)}},
	}
	flags := c.RunFlags(cell)
	if cell.Provider == config.ProviderKwok {
		j.With = append(j.With, value{"cluster", config.ProviderKwok}, value{"kubernetes-version", cell.Simulated()},
			value{"allow-inconclusive", true}) // on simulated nodes nothing else can come out
	} else {
		j.Secrets = &secrets{Kubeconfig: "${{ secrets." + settings.KubeconfigSecret + " }}"}
	}
	if len(c.Run.Categories) > 0 {
		var names []string
		for _, category := range c.Categories() {
			names = append(names, string(category))
		}
		j.With = append(j.With, value{"categories", strings.Join(names, ",")})
	}
	j.With = append(j.With, value{"shards", c.Run.Shards})
	if len(flags) > 0 {
		j.With = append(j.With, value{"args", strings.Join(flags, "\n")})
	}
	j.With = append(j.With, runsOn(settings.RunsOn)...)
	j.With = append(j.With, value{"timeout-minutes", int(time.Duration(c.Run.Timeout).Minutes())})
	return j
}

// artifact is what a cell's artifacts, and its column in the comment, are called.
func artifact(c *config.Config, cell config.Cell) string {
	if len(cell.Title) > maxName {
		return c.PeriodicName(cell)
	}
	return cell.Title
}

// maxName is how long the reusable workflow's input "name" may be.
const maxName = 60

// publish are the inputs with which a cell's results go into the bucket, under
// the name that the cell's periodic job has everywhere.
func publish(c *config.Config, cell config.Cell) values {
	v := values{
		{"publish-bucket", strings.TrimSuffix(c.Results.Bucket+"/"+c.Results.PathPrefix, "/")},
		{"publish-job", c.PeriodicName(cell)},
		{"publish-workload-identity-provider", c.GitHub.Publish.WorkloadIdentityProvider},
	}
	if account := c.GitHub.Publish.ServiceAccount; account != "" {
		v = append(v, value{"publish-service-account", account})
	}
	return v
}

// reaper removes, every hour, what killed runs have left on self-hosted runners; nil
// where no cell makes a cluster on one.
func reaper(c *config.Config) *workflow {
	w := &workflow{
		Name: c.GitHub.Workflow + ": reap",
		On:   on{Schedule: []cron{{Cron: config.Schedule{Every: config.Duration(time.Hour)}.Resolve(c.Name + "-reap").Cron}}, Dispatch: &dispatch{}},
	}
	for _, cell := range slices.Concat(c.PullRequestCells(), c.ScheduledCells()) {
		labels := c.GitHubSettingsFor(cell).RunsOn
		with := runsOn(labels)
		known := slices.ContainsFunc(w.Jobs, func(j value) bool { return slices.Equal(j.value.(*job).With, with) })
		if cell.Provider == config.ProviderKwok && slices.Contains(labels, selfHosted) && !known {
			w.Jobs = append(w.Jobs, value{fmt.Sprintf("reap-%d", len(w.Jobs)+1), &job{Uses: uses(c, "reap.yml"), With: with}})
		}
	}
	if len(w.Jobs) == 0 {
		return nil
	}
	return w
}

// selfHosted is the label of all runners that are not GitHub's.
const selfHosted = "self-hosted"

// commenter comments on pull requests, also on those from forks: it runs the
// default branch's code, with a token that may write. Nil where nothing is to be
// commented.
func commenter(c *config.Config) *workflow {
	if c.GitHub.PullRequests == nil || c.GitHub.Comment.Disabled {
		return nil
	}
	j := &job{
		If:          "github.event.workflow_run.event == 'pull_request'",
		Permissions: permissions{Actions: "read", PullRequests: "write"},
		Uses:        uses(c, "comment.yml"),
		With:        values{{"comment-id", c.CommentID()}},
	}
	if bases := bases(c); len(bases) > 0 {
		j.With = append(j.With, value{"args", strings.Join(bases, "\n")})
	}
	j.With = append(j.With, runsOn(c.GitHub.Comment.RunsOn)...)
	return &workflow{
		Name: c.GitHub.Workflow + ": comment",
		On:   on{WorkflowRun: &workflowRun{Workflows: []string{c.GitHub.Workflow}, Types: []string{"completed"}}},
		Jobs: jobs{{"comment", j}},
	}
}

// bases tell the commenter what to compare with: what the same cell came to when
// it ran by itself, where that is published.
func bases(c *config.Config) []string {
	var flags []string
	cells := c.PullRequestCells()
	for _, j := range c.Jobs() {
		if j.Kind != config.Periodic || !j.Published || !slices.Contains(cells, j.Cell) || !strings.Contains(c.Results.Bucket, "://") {
			continue
		}
		flags = append(flags, fmt.Sprintf("--base=%s=%s", artifact(c, j.Cell), strings.TrimSuffix(c.Results.Bucket, "/")+"/"+path.Join(c.Results.PathPrefix, j.Folder)))
	}
	return flags
}

// uses is one of this project's reusable workflows at the wanted version.
func uses(c *config.Config, file string) string {
	repository, ref, _ := strings.Cut(c.GitHub.Uses, "@")
	return repository + "/" + Folder + "/" + file + "@" + ref
}
