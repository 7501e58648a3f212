// Command redact measures how long secrets are looked for in the logs of a run,
// against how long it takes to gzip the same logs, as Prow does it before it
// keeps them.
//
// Usage, from the root of the repository:
//
//	go run ./test/bench/redact
//
// It makes a log of 100 MB as e2e.test writes it, with requests, dumps of pods
// and a secret now and then, and checks that no secret is left. The best of
// three rounds counts. It exits with 1 when a target is missed, 2 when it could
// not measure.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/test/bench/target"

	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
)

const (
	size   = 100 << 20
	rounds = 3
	// want is the target: the time for redacting, in times of that for gzip.
	want   = 3.0
	secret = "hunter2-of-the-bench"
)

func main() { target.Exit(run(os.Stdout)) }

func run(out io.Writer) error {
	log := makeLog()
	var masked strings.Builder
	if _, err := through(&masked, log); err != nil {
		return err
	}
	if strings.Contains(masked.String(), secret) || !strings.Contains(masked.String(), redact.Mask) {
		return errors.New("a secret is left")
	}
	var ours, theirs time.Duration
	for range rounds {
		took, err := through(io.Discard, log)
		if err != nil {
			return err
		}
		ours = best(ours, took)
		began := time.Now()
		w := gzip.NewWriter(io.Discard)
		if _, err := w.Write(log); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		theirs = best(theirs, time.Since(began))
	}
	ratio := ours.Seconds() / theirs.Seconds()
	fmt.Fprintf(out, "redacting a log of %d MB: %.2f s, %.2f times as long as gzip (target: at most %.1f)\n", len(log)>>20, ours.Seconds(), ratio, want)
	if ratio > want {
		fmt.Fprintln(out, "MISSED")
		return target.ErrMissed
	}
	return nil
}

func best(a, b time.Duration) time.Duration {
	if a == 0 || b < a {
		return b
	}
	return a
}

// through redacts a log as 'run' does: as it comes from a pipe.
func through(w io.Writer, log []byte) (time.Duration, error) {
	began := time.Now()
	clean := redact.NewWriter(w)
	if _, err := io.CopyBuffer(struct{ io.Writer }{clean}, struct{ io.Reader }{bytes.NewReader(log)}, make([]byte, 32<<10)); err != nil {
		return 0, err
	}
	err := clean.Close()
	return time.Since(began), err
}

// lines are what logs of e2e.test are made of; %d is another number each time.
const lines = `  STEP: Creating a kubernetes client @ 11/21/26 06:58:45.%d
  I1121 06:58:45.%d   42 util.go:414] >>> kubeConfig: /root/.kube/config
  STEP: Building a namespace api object, basename svcaccounts-%d @ 11/21/26 06:58:45.1
  STEP: Waiting for a default service account to be provisioned in namespace @ 11/21/26 06:58:45.%d
  I1121 06:58:45.%d   42 builder.go:121] Running '/usr/bin/kubectl --server=https://127.0.0.1:6443 --kubeconfig=/root/.kube/config --namespace=e2e-%d exec x -- curl -q -s --connect-timeout 2 http://10.96.0.10:80/hostname'
  I1121 06:58:45.%d   42 builder.go:146] stderr: "+ curl -g -q -s 'http://10.244.1.3:8083/dial?request=hostname&protocol=http&host=10.244.1.4&port=8083&tries=1'\n"
  I1121 06:58:45.%d   42 pod.go:58] Pod "pod-%d": Phase="Pending", Reason="", readiness=false. Elapsed: 2.004s
  I1121 06:58:47.%d   42 pod.go:58] Pod "pod-%d": Phase="Running", Reason="", readiness=true. Elapsed: 4.011s
  I1121 06:58:47.%d   42 dump.go:53] At 2026-11-21 06:58:45 +0000 UTC - event for pod-%d: {kubelet windows-1} Pulled: Container image "registry.k8s.io/e2e-test-images/agnhost:2.53" already present on machine
  [sig-auth] ServiceAccounts should mount an API token into pods %d [Conformance]
  • [SLOW TEST] [%d.002 seconds]
      AutomountServiceAccountToken: (*bool)(<nil>),
      Name: (string) (len=21) "kube-api-access-%d",
      UID: (types.UID) (len=36) "0b7a6a39-2c2b-4f8d-8a43-%d",
      ResourceVersion: (string) (len=6) "%d",
`

func makeLog() []byte {
	var b bytes.Buffer
	for n := 0; b.Len() < size; n++ {
		b.WriteString(strings.ReplaceAll(lines, "%d", fmt.Sprint(100000+n*7919%899999)))
		if n%100 == 0 {
			fmt.Fprintf(&b, "  I1121 06:58:45.1   42 x.go:1] login with password: %s\n", secret)
		}
	}
	return b.Bytes()
}
