// Node prepares this machine for the tests with a real Linux node, and gives
// such a node to whoever wants to look around on it. docs/real-node.md tells
// more.
//
//	go run ./scripts/node prepare   # get programs and binaries, or say what is missing
//	go run ./scripts/node up        # make a cluster with a real node until interrupted
//	go run ./scripts/node up 2      # with two
//	go run ./scripts/node clean     # remove what a killed process has left
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/test/realnode"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := node(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

func node(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	switch strings.Join(args, " ") {
	case "prepare":
		return prepare(ctx, stderr)
	case "up":
		return up(ctx, 1, stdout, stderr)
	case "up 2":
		return up(ctx, 2, stdout, stderr)
	case "clean":
		return realnode.Clean(ctx, stderr)
	}
	return errors.New("use prepare, up, up 2, clean")
}

// prepare gets what a real node is made of. That a machine cannot have one is
// no error: it is said, and the tests are skipped.
func prepare(ctx context.Context, stderr io.Writer) error {
	if err := realnode.Install(ctx, stderr); err != nil {
		// Without the network, for one: Check says what is still missing.
		fmt.Fprintf(stderr, "real node: %v\n", err)
	}
	err := realnode.Check(ctx)
	var unfit *realnode.UnfitError
	if errors.As(err, &unfit) {
		fmt.Fprintf(stderr, "real node: tests with one are skipped: %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	store, err := store(stderr)
	if err != nil {
		return err
	}
	if _, err := store.Get(ctx, binaries.Pinned, realnode.Needs()...); err != nil {
		return err
	}
	_, err = realnode.BuildCoreDNS(ctx, store.Dir, stderr)
	return err
}

// up makes a cluster with real nodes, prints its kubeconfig and removes it when
// interrupted.
func up(ctx context.Context, nodes int, stdout, stderr io.Writer) error {
	store, err := store(stderr)
	if err != nil {
		return err
	}
	options := realnode.DefaultOptions()
	options.Binaries, options.Progress, options.Nodes = store, stderr, nodes
	if options.CoreDNS, err = realnode.BuildCoreDNS(ctx, store.Dir, stderr); err != nil {
		return err
	}
	made, err := realnode.Up(ctx, options)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, made.Cluster.Kubeconfig)
	fmt.Fprintln(stderr, "real node: ready; interrupt (Ctrl-C) to remove it")
	<-ctx.Done()
	return made.Down()
}

func store(stderr io.Writer) (*binaries.Store, error) {
	dir, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		return nil, err
	}
	return &binaries.Store{Dir: dir, Progress: stderr}, nil
}
