package verdict_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
)

func TestWhatWasDeclaredAwayStandsBesideTheVerdict(t *testing.T) {
	base := ideal(t, planOf(t, result.Selection{}, 1), 1)
	withoutGMSA := func(f *result.Facts) { f.APIGroups = []string{"apps", "metrics.k8s.io"} }
	for what, c := range map[string]struct {
		declared result.Declarations
		change   func(f *result.Facts)
		want     string
		verdict  verdict.Verdict
	}{
		"nothing":              {want: "ready", verdict: verdict.Ready},
		"one":                  {declared: result.Declarations{Without: []string{"netpol"}}, want: "ready without netpol, as declared"},
		"two, one of it twice": {declared: result.Declarations{Without: []string{"netpol", "gpu", "netpol"}}, want: "ready without gpu and netpol, as declared"},
		"an air gap":           {declared: result.Declarations{AirGapped: true}, change: withoutGMSA, want: "ready without internet, as declared"},
		"an air gap in two ways, and more": {
			declared: result.Declarations{AirGapped: true, Without: []string{"internet", "gpu", "netpol"}}, change: withoutGMSA,
			want: "ready without gpu, internet and netpol, as declared",
		},
		"gMSA that is served": {
			declared: result.Declarations{Without: []string{"netpol", "gmsa"}},
			want:     "ready without gmsa (yet the API group windows.k8s.io is served) and netpol, as declared",
		},
		"gMSA that is not served": {
			declared: result.Declarations{Without: []string{"gmsa"}},
			change:   withoutGMSA,
			want:     "ready without gmsa, as declared",
		},
		"Hyper-V that is there": {
			declared: result.Declarations{Without: []string{"hyperv"}},
			change:   func(f *result.Facts) { f.RuntimeClasses = []string{"runhcs-wcow-hypervisor"} },
			want:     "ready without hyperv (yet there is a RuntimeClass runhcs-wcow-hypervisor), as declared",
		},
		"Hyper-V that is not known": {declared: result.Declarations{Without: []string{"hyperv"}}, want: "ready without hyperv, as declared"},
		"HostProcess on containerd": {
			declared: result.Declarations{Without: []string{"hpc"}},
			want:     "ready without hpc (yet 2 nodes have containerd on Windows), as declared",
		},
		"dual-stack with two families": {
			declared: result.Declarations{Without: []string{"dual-stack"}},
			want:     "inconclusive without dual-stack (yet 4 nodes have pod CIDRs of two families), as declared",
			verdict:  verdict.Inconclusive,
		},
		"dual-stack that is not known": {
			declared: result.Declarations{Without: []string{"dual-stack"}},
			change: func(f *result.Facts) {
				for i := range f.Nodes {
					f.Nodes[i].PodCIDRs = nil
				}
			},
			want: "ready without dual-stack, as declared",
		},
		"a name of nobody": {
			declared: result.Declarations{Without: []string{"gmsa: READY\n", "netpol"}},
			want:     `ready without "gmsa: READY\n" and netpol, as declared`,
		},
	} {
		run := copyOf(base)
		run.Manifest.Declared = c.declared
		if c.change != nil {
			c.change(&run.Manifest.Cluster)
		}
		v := c.verdict
		if v == "" {
			v = verdict.Ready
		}
		if j := want(t, what, run, v, v.ExitCode()); j.Words() != c.want {
			t.Errorf("%s: %s\nwant %s", what, j.Words(), c.want)
		}
	}
	run := copyOf(base)
	run.Plan.StandardDigest = ""
	run.Manifest.Declared.Without = slices.Repeat([]string{"x"}, 50)
	for i := range run.Manifest.Declared.Without {
		run.Manifest.Declared.Without[i] += strings.Repeat("y", i)
	}
	if words := verdict.Judge(run).Words(); !strings.HasSuffix(words, " and 10 more, as declared (another standard)") {
		t.Error(words)
	}
}

func TestDeclarationsOfAllShardsCount(t *testing.T) {
	p := planOf(t, result.Selection{}, 2)
	run := ideal(t, p, 1)
	one, two := *manifestOf(p, 1), *manifestOf(p, 2)
	one.Declared.Without = []string{"netpol"}
	two.Declared = result.Declarations{AirGapped: true, Without: []string{"gmsa"}}
	two.Cluster.APIGroups = nil
	run.Manifest.Shard, run.Manifest.Shards = 0, []result.Manifest{one, two}
	if got := verdict.Judge(run).AsDeclared(); got != " without gmsa, internet and netpol, as declared" {
		t.Error(got)
	}
}
