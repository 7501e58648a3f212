// Command op-readiness answers whether a Kubernetes cluster is operationally
// ready for Windows workloads, as KEP-2578 defines it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/sirupsen/logrus"

	"github.com/windows-op-readiness/windows-op-readiness/internal/cli"
)

func main() {
	logrus.SetLevel(logrus.WarnLevel) // Prow's packages narrate, even that a signal came
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(cli.Main(context.Background(), os.Args[1:], cli.Surroundings{
		Environ: os.Environ(),
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Signals: signals,
	}))
}
