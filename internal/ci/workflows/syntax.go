package workflows

import (
	"encoding/json"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
)

// defaultRunner is the default of runs-on in the reusable workflows.
const defaultRunner = "ubuntu-latest"

// The part of the workflow syntax that is written here, in the order in which it
// is written.
type (
	workflow struct {
		Name        string      `yaml:"name"`
		On          on          `yaml:"on"`
		Permissions permissions `yaml:"permissions"` // none, but those of jobs
		Concurrency concurrency `yaml:"concurrency,omitempty"`
		Jobs        jobs        `yaml:"jobs"`
	}
	on struct {
		PullRequest *pullRequest `yaml:"pull_request,omitempty"`
		Schedule    []cron       `yaml:"schedule,omitempty"`
		Dispatch    *dispatch    `yaml:"workflow_dispatch,omitempty"`
		WorkflowRun *workflowRun `yaml:"workflow_run,omitempty"`
	}
	pullRequest struct {
		Branches []string `yaml:"branches,omitempty"`
		Paths    []string `yaml:"paths,omitempty"`
	}
	cron struct {
		Cron string `yaml:"cron"`
	}
	dispatch struct {
		Inputs inputs `yaml:"inputs,omitempty"`
	}
	inputs struct {
		Cell *cellChoice `yaml:"cell"`
	}
	cellChoice struct {
		Description string   `yaml:"description"`
		Type        string   `yaml:"type"`
		Default     string   `yaml:"default"`
		Options     []string `yaml:"options"`
	}
	workflowRun struct {
		Workflows []string `yaml:"workflows"`
		Types     []string `yaml:"types"`
	}
	permissions struct {
		Actions      string `yaml:"actions,omitempty"`
		IDToken      string `yaml:"id-token,omitempty"`
		PullRequests string `yaml:"pull-requests,omitempty"`
	}
	concurrency struct {
		Group            string `yaml:"group"`
		CancelInProgress bool   `yaml:"cancel-in-progress"`
	}
	job struct {
		Name        string      `yaml:"name,omitempty"`
		If          string      `yaml:"if,omitempty"`
		Permissions permissions `yaml:"permissions,omitempty"`
		Uses        string      `yaml:"uses"`
		With        values      `yaml:"with"`
		Secrets     *secrets    `yaml:"secrets,omitempty"`
	}
	secrets struct {
		Kubeconfig string `yaml:"kubeconfig"`
	}
)

// add adds the job that tests a cell. The id of a job begins with a letter.
func (w *workflow) add(cell config.Cell, j *job) {
	w.Jobs = append(w.Jobs, value{"cell-" + cell.Name, j})
}

// value is one entry of a mapping whose order is kept.
type value struct {
	key   string
	value any
}

type (
	jobs   []value
	values []value
)

// MarshalYAML implements [yaml.Marshaler].
func (j jobs) MarshalYAML() (any, error) { return mapping(j) }

// MarshalYAML implements [yaml.Marshaler].
func (v values) MarshalYAML() (any, error) { return mapping(v) }

func mapping(entries []value) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, e := range entries {
		var key, value yaml.Node
		if err := key.Encode(e.key); err != nil {
			return nil, err
		}
		if err := value.Encode(e.value); err != nil {
			return nil, err
		}
		n.Content = append(n.Content, &key, &value)
	}
	return n, nil
}

// runsOn is the input of the reusable workflows for a runner, which they take in
// JSON; none for the one that is their default.
func runsOn(labels config.Values) values {
	if len(labels) == 0 || slices.Equal(labels, config.Values{defaultRunner}) {
		return nil
	}
	data, err := json.Marshal(labels)
	if err != nil {
		panic(err) // texts always have a form in JSON
	}
	return values{{"runs-on", string(data)}}
}
