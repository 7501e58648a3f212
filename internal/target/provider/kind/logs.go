package kind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/folder"
)

// Logs implements [provider.Provider]: it has kind collect what it can of the nodes, and
// adds what kind and kwok said. Nothing is kept before it was redacted.
func (p *Provider) Logs(ctx context.Context, e *provider.Entry, dir string) ([]provider.Missing, error) {
	c, err := p.cluster(e.Plan.Name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var missing []provider.Missing
	miss := func(what string, err error) {
		missing = append(missing, provider.Missing{What: what, Reason: err.Error()})
	}
	for _, name := range []string{c.callLog(callCreate), c.kwokLog()} {
		if err := folder.KeepLog(name, filepath.Join(dir, filepath.Base(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			miss(filepath.Base(name), err)
		}
	}
	engines, err := p.enginesOf(ctx, e)
	if err != nil {
		miss("the logs of nodes", err)
		return missing, nil
	}
	for _, engine := range engines {
		if err := p.nodeLogs(ctx, engine, c, dir, miss); err != nil {
			miss("the logs of nodes, or a part of them", err)
		}
	}
	return missing, nil
}

// nodeLogs has kind collect what it can into a folder beside the cluster's, within a
// minute, and keeps it, redacted.
func (p *Provider) nodeLogs(ctx context.Context, e *engine, c *cluster, dir string, miss func(string, error)) error {
	raw, err := os.MkdirTemp(filepath.Dir(c.Dir), ".logs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(raw)
	if err := os.MkdirAll(c.Dir, 0o700); err != nil { // where the call's log goes
		return err
	}
	limit := cmp.Or(p.LogTimeout, time.Minute)
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %s", limit))
	defer cancel()
	err = p.call(limited, c, &call{Call: callLogs, Engine: e.name, Name: c.Name, Dir: raw}, nil)
	walk := filepath.WalkDir(raw, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		relative, err := filepath.Rel(raw, path)
		if err == nil {
			err = folder.KeepLog(path, filepath.Join(dir, relative))
		}
		if err != nil {
			miss(relative, err)
		}
		return ctx.Err()
	})
	return errors.Join(err, walk)
}
