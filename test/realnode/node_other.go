//go:build !linux

package realnode

import (
	"context"
	"io"
)

type running struct{}

// Up returns an [*UnfitError]: a real node needs Linux.
func Up(ctx context.Context, _ Options) (*Node, error) { return nil, Check(ctx) }

// Down does nothing here.
func (n *Node) Down() error { return nil }

// Log returns nothing here.
func (n *Node) Log(string) string { return "" }

// Clean does nothing here.
func Clean(context.Context, io.Writer) error { return nil }
