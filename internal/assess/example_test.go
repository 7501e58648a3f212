package assess_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/windows-op-readiness/windows-op-readiness/internal/assess"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// One requirement, on a simulated cluster that is made for it and removed: its
// test passes, and proves nothing of Windows.
func Example() {
	results, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(results)
	ctx := context.Background()
	p, err := assess.Prepare(ctx, assess.Request{
		Planning:  assess.Planning{Selection: result.Selection{Cases: []string{"core-scheduling-insufficient-pending"}}},
		Cluster:   "kwok", // none for the cluster of the kubeconfig
		ReportDir: filepath.Join(results, "one"),
		Environ:   os.Environ(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	stopped := p.Execute(ctx)
	_, judgement, err := p.Conclude()
	fmt.Println(judgement.Verdict, judgement.ExitCode(), stopped, err)
	// Output: inconclusive 3 <nil> <nil>
}
