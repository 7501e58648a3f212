package assess

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kind"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/ledger"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/life"
)

// DefaultExpiry is how long a cluster may stay unless somebody says otherwise.
const DefaultExpiry = 6 * time.Hour

// Clusters returns those of a ledger, with all providers there are. What they are made
// of comes out of store.
func Clusters(store *binaries.Store, ledgerDir string, environ []string, progress io.Writer) *life.Clusters {
	return &life.Clusters{
		Ledger:   &ledger.Ledger{Dir: ledgerDir},
		Progress: progress,
		Providers: []provider.Provider{
			&kwok.Provider{Binaries: store, Dir: filepath.Join(store.Dir, "clusters"), Progress: progress, Environ: environ},
			&kind.Provider{Binaries: store, Dir: filepath.Join(store.Dir, "kind-clusters"), Self: self(), Progress: progress, Environ: environ},
		},
	}
}

// self is how this program's own hidden commands about clusters are called.
func self() []string {
	program, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{program, "cluster"}
}

// Owner is for whom clusters are made: the repository of a CI job, or somebody on this
// machine.
func Owner(getenv func(string) string) string {
	if repository := getenv("GITHUB_REPOSITORY"); repository != "" {
		return repository
	}
	if owner, name := getenv("REPO_OWNER"), getenv("REPO_NAME"); owner != "" && name != "" {
		return owner + "/" + name
	}
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}

// NewClusterName returns a name that no other cluster has: 9 characters, so that names
// of Windows machines that begin with it can be told apart.
func NewClusterName() string {
	return "wor-" + strings.ToLower(rand.Text()[:5])
}

// makeCluster makes the cluster of a new run that wants one of its own. That of a run
// that goes on is still there when the run was killed, and gone when it stopped.
func (p *Prepared) makeCluster(ctx context.Context) error {
	r := &p.req
	by, request := r.Cluster, provider.DefaultRequest()
	request.Name, request.Set = NewClusterName(), r.ClusterSet
	request.KubernetesVersion = r.KubernetesVersion
	if p.Previous != nil {
		by, request.Name, _ = strings.Cut(p.Manifest.Target.Made, "/")
		request.KubernetesVersion = p.Manifest.Cluster.ServerVersion
	}
	if by == "" {
		return nil
	}
	store, err := r.store()
	if err != nil {
		return err
	}
	dir, err := ledger.DefaultDir(r.getenv)
	if err != nil {
		return err
	}
	p.clusters = Clusters(store, dir, r.Environ, r.notes())
	if e, err := p.clusters.Ledger.Read(request.Name); err == nil && e != nil {
		request = e.Plan.Request // that of the run that goes on
	}
	m := p.Manifest
	request.Owner, request.Run = Owner(r.getenv), runTag(r.getenv, m)
	request.ExpireAfter(DefaultExpiry)
	if !r.Deadline.IsZero() && r.Deadline.After(request.Expires.Add(-time.Hour)) {
		request.Expires = r.Deadline.Add(time.Hour)
	}
	p.clusters.Sweep(ctx, by)
	if p.made, err = p.clusters.Plan(ctx, by, request); err != nil {
		return err
	}
	made, err := p.clusters.Up(ctx, p.made, life.UpOptions{KeepOnFailure: r.KeepOnFailure})
	if err != nil {
		p.made = nil // it is gone, or kept
		return err
	}
	m.Target.Made = by + "/" + request.Name
	if left := time.Until(r.Deadline); !r.Deadline.IsZero() {
		// Of the run's time some is for the cluster's removal; of little time, little.
		r.Deadline = r.Deadline.Add(-min(p.made.Teardown, max(left, 0)/4))
	}
	r.Kubeconfig, r.Context = made.Kubeconfig, made.Context
	return nil
}

// RunVariable of the environment tags the clusters of a run otherwise than by its id,
// so that whoever started the run can remove them by a name that it chose.
const RunVariable = "OP_READINESS_CLUSTER_RUN"

// runTag is the run in the tags of its clusters, such as "8123-1-2": run, shard and
// attempt.
func runTag(getenv func(string) string, m *result.Manifest) string {
	if tag := getenv(RunVariable); tag != "" {
		return tag
	}
	return fmt.Sprintf("%s-%d-%d", m.RunID, m.Shard, m.Attempt)
}

// giveBack removes the cluster that was made, or keeps it for a while where tests failed
// and that was asked for, and says what is left of it that should not be.
func (p *Prepared) giveBack(failed bool) error {
	plan := p.made
	if plan == nil {
		return nil
	}
	p.made = nil
	p.release()
	// The cluster goes also, and above all, when the run was interrupted.
	ctx, cancel := context.WithTimeoutCause(context.Background(), plan.Teardown, fmt.Errorf("not gone after %s", plan.Teardown))
	defer cancel()
	if failed && p.req.KeepOnFailure > 0 {
		return p.clusters.Keep(ctx, plan.Name, p.req.KeepOnFailure)
	}
	return p.clusters.Down(ctx, plan.Name)
}

// failed reports whether a test failed or did not come to an answer, which is what a
// cluster is kept for.
func failed(j *verdict.Judgement) bool {
	return j.Outcomes[verdict.Failed]+j.Outcomes[verdict.Error]+len(j.Suites) > 0
}
