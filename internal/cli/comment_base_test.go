package cli

import (
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/test/e2etest"
)

// comment prints the comment on results, against bases.
func (b *builds) comment(args ...string) said {
	b.t.Helper()
	return b.mainIn([]string{b.emulate}, append([]string{"comment", "--dry-run"}, args...)...)
}

func TestTheBaseLiesInABucket(t *testing.T) {
	b := newBuilds(t, e2etest.Script{})
	good := b.job("Core.Network", "base")
	b.play(map[string][]string{"[sig-x] b": {e2etest.Fail}})
	results := b.run("Core.Network", "c1")
	job := good[:strings.LastIndex(good, "/")]
	const fresh, uncompared = "newly failing", "No results of the base could be read: nothing is compared with it."
	b.want("a build", b.comment(results, "--base", good), verdict.ExitReady, fresh, "The base is "+good+`, commit "base"`)
	b.want("a job", b.comment(results, "--base", job+"/"), verdict.ExitReady, fresh, "The base is "+good)
	b.want("the aliases of a job", b.comment(results, "--base", "gs://readiness/pr-logs/directory/pull-x-core-network"), verdict.ExitReady, fresh, "The base is "+good)
	b.want("of a cell", b.comment("ltsc2022="+results, "--base", "ltsc2022="+good), verdict.ExitReady, fresh)

	// The newest build still runs: the one before it is the base.
	running := b.job("Core.Network", "newer")
	b.change(running+" finished.json", replaceAll(""))
	b.want("a job with a running build", b.comment(results, "--base", job), verdict.ExitReady, fresh, "The base is "+good)
	got := b.comment(results, "--base", running)
	b.want("the running build itself", got, verdict.ExitReady, "The results of the base are doubtful", "has no finished.json")

	for what, url := range map[string]string{
		"nothing there": "gs://readiness/logs/none", "no bucket": "gs://nobody/logs/x", "no results": "gs://readiness/pr-logs", "no folder": "file:///nowhere/at/all",
	} {
		got := b.comment(results, "--base", url)
		b.want(what, got, verdict.ExitReady, uncompared, "Nothing is compared with the base: ")
		if strings.Contains(got.stdout, fresh) || strings.Contains(got.stdout, url) {
			t.Errorf("%s: a claim without a base, or an inner address in public:\n%s", what, got.stdout)
		}
	}
	b.change(good+" artifacts/shard-1/"+result.ManifestFile, replaceAll("["))
	b.want("a ruin", b.comment(results, "--base", good), verdict.ExitReady, uncompared)
	b.want("no URL of a bucket", b.comment(results, "--base", "https://example.com/x"), verdict.ExitUsage, "--base", "gs://NAME")
	b.want("twice", b.comment(results, "--base", good, "--base", good), verdict.ExitUsage, "two are named")
	b.want("of no cell", b.comment(results, "--base", "x="+good), verdict.ExitUsage, `no results are named "x"`)
}

func TestTheBaseOfNoCommit(t *testing.T) {
	b := newBuilds(t, e2etest.Script{})
	base := b.publish("Core.Network", b.run("Core.Network", ""))
	b.want("a build", b.comment(b.run("Core.Network", "c1"), "--base", base), verdict.ExitReady, "The base is "+base+", of no known commit\n")
}

// Shards of the base lie beside each other in its build.
func TestTheBaseHasShards(t *testing.T) {
	b := newBuilds(t, e2etest.Script{})
	base := b.publish("Core.Network", b.run("Core.Network", "base", "--run-id", "n", "--shards", "2", "--shard", "1"), b.run("Core.Network", "base", "--run-id", "n", "--shards", "2", "--shard", "2"))
	b.play(map[string][]string{"[sig-x] b": {e2etest.Fail}, "[sig-x] a": {e2etest.Fail}})
	b.want("both shards are compared", b.comment(b.run("Core.Network", "c1"), "--base", base), verdict.ExitReady, "core-network-a", "core-network-b", "newly failing")
}
