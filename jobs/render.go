package jobs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	prowconfig "sigs.k8s.io/prow/pkg/config"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/generated"
)

// Folder is where the rendered files lie in a repository.
const Folder = "jobs"

// Render makes the files of Prow's jobs, one for each kind. Prow wants no two files
// of one name in all its folders, so theirs begin with the configuration's. What is wrong with
// the configuration, as far as only jobs show it, is [config.Problems].
func Render(c *config.Config) ([]generated.File, error) {
	all, err := Make(c)
	if err != nil {
		return nil, err
	}
	var files []generated.File
	for _, part := range []struct {
		kind config.Kind
		jobs prowconfig.JobConfig
		n    int
	}{
		{config.Presubmit, prowconfig.JobConfig{PresubmitsStatic: all.PresubmitsStatic}, len(all.PresubmitsStatic)},
		{config.Periodic, prowconfig.JobConfig{Periodics: all.Periodics}, len(all.Periodics)},
		{config.Postsubmit, prowconfig.JobConfig{PostsubmitsStatic: all.PostsubmitsStatic}, len(all.PostsubmitsStatic)},
	} {
		f := generated.File{Name: fmt.Sprintf("%s-%ss.yaml", c.Name, part.kind)}
		if part.n > 0 {
			if f.Data, err = marshal(part.jobs, c.Path()); err != nil {
				return nil, fmt.Errorf("writing %s: %w", f.Name, err)
			}
		}
		files = append(files, f)
	}
	return files, nil
}

// Make makes the jobs of a configuration as Prow's own types. What is wrong with
// the configuration is [config.Problems].
func Make(c *config.Config) (*prowconfig.JobConfig, error) {
	all := &prowconfig.JobConfig{}
	if c.Prow == nil {
		return nil, config.Problems{c.Problem("", "has no section prow, so there are no Prow jobs: add one, see 'op-readiness config schema'")}
	}
	seen := map[string]bool{}
	for _, j := range c.Jobs() {
		if !j.InProw {
			continue
		}
		base, err := jobBase(c, j, seen[j.Name])
		seen[j.Name] = true
		if err != nil {
			return nil, err
		}
		brancher := prowconfig.Brancher{Branches: j.Branches, SkipBranches: j.SkipBranches}
		changes := prowconfig.RegexpChangeMatcher{RunIfChanged: j.RunIfChanged}
		switch j.Kind {
		case config.Presubmit:
			if all.PresubmitsStatic == nil {
				all.PresubmitsStatic = map[string][]prowconfig.Presubmit{}
			}
			all.PresubmitsStatic[c.Repository] = append(all.PresubmitsStatic[c.Repository], prowconfig.Presubmit{
				JobBase:             base,
				Optional:            j.Optional,
				Brancher:            brancher,
				RegexpChangeMatcher: changes,
			})
		case config.Postsubmit:
			all.PostsubmitsStatic = map[string][]prowconfig.Postsubmit{c.Repository: {{
				JobBase:             base,
				Brancher:            brancher,
				RegexpChangeMatcher: changes,
			}}}
		case config.Periodic:
			p := prowconfig.Periodic{JobBase: base, Cron: j.Schedule.Cron}
			if j.Schedule.Interval != 0 {
				p.Interval = j.Schedule.Interval.String()
			}
			if j.Schedule.MinimumInterval != 0 {
				p.MinimumInterval = j.Schedule.MinimumInterval.String()
			}
			all.Periodics = append(all.Periodics, p)
		}
	}
	return all, nil
}

// marshal writes jobs as Prow reads them: the fields are Prow's own, in the
// order of their names, but a thing's name comes first.
func marshal(jobs prowconfig.JobConfig, source string) ([]byte, error) {
	data, err := json.Marshal(jobs)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Generated from %s by 'op-readiness generate prow'. DO NOT EDIT.\n", path.Base(strings.ReplaceAll(source, `\`, "/")))
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	w := writer{texts: map[string]*yaml.Node{}}
	if err := errors.Join(enc.Encode(w.node(value)), w.err); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// writer makes YAML of what was JSON.
type writer struct {
	texts map[string]*yaml.Node
	err   error
}

func (w *writer) node(value any) *yaml.Node {
	switch v := value.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode}
		keys := slices.SortedFunc(maps.Keys(v), func(a, b string) int {
			switch "name" {
			case a:
				return -1
			case b:
				return 1
			}
			return cmp.Compare(a, b)
		})
		for _, key := range keys {
			if !empty(key, v[key]) {
				n.Content = append(n.Content, w.text(key), w.node(v[key]))
			}
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v {
			n.Content = append(n.Content, w.node(item))
		}
		return n
	case string:
		return w.text(v)
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}
	}
	n := &yaml.Node{}
	w.err = errors.Join(w.err, n.Encode(value))
	return n
}

// text is a scalar that all readers of YAML take for a text; the encoder knows
// which need quotes. Most occur many times.
func (w *writer) text(text string) *yaml.Node {
	n, ok := w.texts[text]
	if !ok {
		n = &yaml.Node{}
		w.err = errors.Join(w.err, n.Encode(text))
		w.texts[text] = n
	}
	return n
}

// empty says that Kubernetes' types write a field though it has no value.
func empty(key string, value any) bool {
	object, isObject := value.(map[string]any)
	return key == "name" && value == "" || key == "resources" && isObject && len(object) == 0
}
