// Generate makes the pins again: those of every pinned version, or of the
// versions given as arguments as well.
//
//	go run ./internal/engine/binaries/pins/generate            # from the top of the repository
//	go run ./internal/engine/binaries/pins/generate v1.37.1    # pins one version more
//
// It needs the Go module proxy and takes about a minute for each version.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries/pins"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := generate(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate pins:", err)
		os.Exit(1)
	}
}

// generate writes the pins of all pinned versions and of more, and removes
// the folders that none of them needs.
func generate(ctx context.Context, more []string) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	versions := binaries.PinnedVersions()
	for _, version := range more {
		if version, err = binaries.ParseVersion(version); err != nil {
			return err
		}
		versions = append(versions, version)
	}
	slices.Sort(versions)
	needed := map[string]bool{}
	store := &binaries.Store{Progress: os.Stderr}
	for _, version := range slices.Compact(versions) {
		resolved, err := store.Pins(ctx, version)
		if err != nil {
			return err
		}
		for _, pin := range resolved {
			folder := filepath.Join(root, pins.Folder(pin.Family, pin.Version))
			if err := write(folder, pin); err != nil {
				return err
			}
			needed[folder] = true
		}
	}
	return prune(root, needed)
}

func write(folder string, pin binaries.Pin) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, pins.ModFile), pin.Mod, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, pins.SumFile), pin.Sum, 0o644)
}

// prune removes the pins under root that are not needed.
func prune(root string, needed map[string]bool) error {
	found, err := filepath.Glob(filepath.Join(root, "*", pins.ModFile))
	if err != nil {
		return err
	}
	for _, file := range found {
		if folder := filepath.Dir(file); !needed[folder] {
			if err := os.RemoveAll(folder); err != nil {
				return err
			}
		}
	}
	return nil
}

// findRoot returns internal/engine/binaries/pins, from there or from the top of the repository.
func findRoot() (string, error) {
	for _, dir := range []string{".", "internal/engine/binaries/pins"} {
		if _, err := os.Stat(filepath.Join(dir, "pins.go")); err == nil {
			return filepath.Abs(dir)
		}
	}
	return "", fmt.Errorf("no pins.go here: run it from the top of the repository")
}
