// Package prowtest lets tests comment on a pull request, and Prow's own code
// start jobs for it: the trigger plugin, with Prow's client, asks a GitHub with
// state.
package prowtest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	prowapi "sigs.k8s.io/prow/pkg/apis/prowjobs/v1"
	prowfake "sigs.k8s.io/prow/pkg/client/clientset/versioned/fake"
	prowconfig "sigs.k8s.io/prow/pkg/config"
	"sigs.k8s.io/prow/pkg/github"
	"sigs.k8s.io/prow/pkg/plugins"
	_ "sigs.k8s.io/prow/pkg/plugins/trigger" // registers itself
)

// withQuery adds what plugins may ask by GraphQL; the trigger plugin asks nothing.
type withQuery struct{ github.Client }

func (c withQuery) Query(context.Context, any, map[string]any) error {
	return fmt.Errorf("GraphQL is not asked")
}

// Comment hands somebody's comment on a pull request to Prow's trigger plugin, as
// registered, and returns the ProwJobs that it creates, sorted by job. client is
// Prow's own, of a [GitHub].
func Comment(t *testing.T, cfg *prowconfig.Config, client github.Client, p *PullRequest, author, body string) []prowapi.ProwJob {
	t.Helper()
	agent := &plugins.ConfigAgent{}
	agent.Set(&plugins.Configuration{Plugins: plugins.Plugins{Org: {Plugins: []string{"trigger"}}}})
	handler, ok := agent.GenericCommentHandlers(Org, Repo)["trigger"]
	if !ok {
		t.Fatal("Prow has no plugin called trigger")
	}
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	cluster := prowfake.NewSimpleClientset().ProwV1().ProwJobs(cfg.ProwJobNamespace)
	err := handler(plugins.Agent{
		GitHubClient:  withQuery{client},
		ProwJobClient: cluster,
		Config:        cfg,
		PluginConfig:  agent.Config(),
		Logger:        logrus.NewEntry(logger),
	}, github.GenericCommentEvent{
		Action: github.GenericCommentActionCreated, IsPR: true, IssueState: p.State, Number: p.Number, GUID: "guid",
		Repo: p.Base.Repo, Body: body, User: github.User{Login: author}, IssueAuthor: p.User,
		HTMLURL: fmt.Sprintf("https://github.com/%s/%s/pull/%d#issuecomment-1", Org, Repo, p.Number),
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := cluster.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b prowapi.ProwJob) int { return strings.Compare(a.Spec.Job, b.Spec.Job) })
	return list.Items
}
