// Command op-readiness answers whether a Kubernetes cluster is operationally
// ready for Windows workloads, as KEP-2578 defines it.
package main

import (
	"os"

	"github.com/sirupsen/logrus"

	"github.com/windows-op-readiness/windows-op-readiness/internal/cli"
)

func main() {
	logrus.SetLevel(logrus.WarnLevel) // Prow's packages narrate, even that a signal came
	os.Exit(cli.Process())
}
