package assess

import (
	"context"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/prepull"
)

// prepull has nodes pull images before the first test, where that is asked for, and
// notes in the manifest what came of it. Images that cannot be pulled, and whatever
// else goes wrong, keep no test from running. The error is that of the folder.
func (p *Prepared) prepull(ctx context.Context) error {
	if !p.req.Prepull || len(p.Due) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !p.req.Deadline.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, p.req.Deadline)
		defer cancel()
	}
	go func() {
		select {
		case <-p.req.Stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	images, err := p.binary.Images(ctx, p.settings.RepoList)
	if err == nil {
		p.Manifest.Pulls, err = prepull.Pull(ctx, p.cluster.Client(), prepull.Options{
			ID: p.Manifest.RunID, Images: images, Nodes: p.Manifest.Cluster.Nodes, Limit: p.req.PrepullLimit, Note: p.req.note,
		})
	}
	if err != nil {
		p.req.notef("warning: not all images were pulled before the tests: %v", err)
	}
	return p.folder.WriteJSON(result.ManifestFile, p.Manifest)
}
