// Kind prepares this machine for the tests with kind clusters. docs/kind-bed.md tells
// more.
//
//	go run ./scripts/kind prepare   # get engine, binaries and node image, or say what is missing
//	go run ./scripts/kind env       # print the variables with which podman and kind see them
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
	"github.com/windows-op-readiness/windows-op-readiness/test/kind/engine"
	"github.com/windows-op-readiness/windows-op-readiness/test/kind/nodeimage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kind:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cache, err := binaries.DefaultDir(os.Getenv)
	if err != nil {
		return err
	}
	switch strings.Join(args, " ") {
	case "prepare":
		return prepare(ctx, cache, stderr)
	case "env":
		found, err := engine.Find(ctx, cache)
		if err != nil {
			return err
		}
		for _, variable := range append(found.Env, "KIND_EXPERIMENTAL_PROVIDER="+found.Name) {
			fmt.Fprintf(stdout, "export %s\n", variable)
		}
		return nil
	}
	return errors.New("use prepare, env")
}

// prepare gets what a kind cluster is made of. That a machine cannot have one is no
// error: it is said, and the tests are skipped.
func prepare(ctx context.Context, cache string, stderr io.Writer) error {
	if err := engine.Install(ctx, stderr); err != nil {
		// Without the network, for one: Find says what is still missing.
		fmt.Fprintf(stderr, "kind: %v\n", err)
	}
	found, err := engine.Find(ctx, cache)
	var unfit *engine.UnfitError
	if errors.As(err, &unfit) {
		fmt.Fprintf(stderr, "kind: tests with clusters of it are skipped: %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	store := &binaries.Store{Dir: cache, Progress: stderr}
	if _, err := store.Get(ctx, binaries.Pinned, nodeimage.Needs()...); err != nil {
		return err
	}
	if found.Name != engine.Podman {
		return nil
	}
	maker := &nodeimage.Maker{Engine: found, Binaries: store, KubernetesVersion: binaries.Pinned, Progress: stderr}
	_, err = maker.Make(ctx)
	return err
}
