package result_test

import (
	"slices"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Shards may pull the same images: of one, what went worst is told, once.
func TestPullsOfShards(t *testing.T) {
	there := result.Pull{Image: "a:1", OS: specs.Linux, Nodes: 1, Seconds: 1}
	took := result.Pull{Image: "a:1", OS: specs.Linux, Nodes: 1, Seconds: 9}
	failed := result.Pull{Image: "a:1", OS: specs.Linux, Nodes: 1, Seconds: 5, Problem: "no such image"}
	windows := result.Pull{Image: "a:1", OS: specs.Windows, WindowsBuild: "10.0.20348", Nodes: 1, Seconds: 2}
	for name, tt := range map[string]struct{ first, second, want []result.Pull }{
		"the longer one":  {[]result.Pull{took, windows}, []result.Pull{there, windows}, []result.Pull{took, windows}},
		"the failed one":  {[]result.Pull{took}, []result.Pull{failed}, []result.Pull{failed}},
		"which stays":     {[]result.Pull{failed}, []result.Pull{took}, []result.Pull{failed}},
		"only one shard":  {nil, []result.Pull{there}, []result.Pull{there}},
		"none are pulled": {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			run := &result.Run{Manifest: &result.Manifest{Shards: []result.Manifest{{Shard: 1, Pulls: tt.first}, {Shard: 2, Pulls: tt.second}}}}
			if got := run.Pulls(); !slices.Equal(got, tt.want) {
				t.Errorf("got %+v", got)
			}
		})
	}
}
