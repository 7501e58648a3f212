//go:build !linux

package realnode

import (
	"context"
	"io"
)

type (
	running struct{}
	boxed   struct{}
)

// Up returns an [*UnfitError]: a real node needs Linux.
func Up(ctx context.Context, _ Options) (*Bed, error) { return nil, Check(ctx) }

// Down does nothing here.
func (b *Bed) Down() error { return nil }

// Log returns nothing here.
func (n *Node) Log(Program) string { return "" }

// Stop does nothing here.
func (n *Node) Stop(context.Context, Program) error { return nil }

// Start does nothing here.
func (n *Node) Start(context.Context, Program) error { return nil }

// Configure does nothing here.
func (n *Node) Configure(context.Context, Program, Config) error { return nil }

// Run does nothing here.
func (n *Node) Run(context.Context, ...string) (string, error) { return "", nil }

// NextBoot does nothing here.
func (n *Node) NextBoot(Boot) {}

// Reboot does nothing here.
func (n *Node) Reboot(context.Context) error { return nil }

// CoreDNSPath returns nothing here.
func CoreDNSPath(string) (string, error) { return "", nil }

// BuildCoreDNS does nothing here.
func BuildCoreDNS(context.Context, string, io.Writer) (string, error) { return "", nil }

// Clean does nothing here.
func Clean(context.Context, io.Writer) error { return nil }
