//go:build linux || darwin

package main

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// specs is how many specs e2e.test of Kubernetes 1.36 has. Each of its JUnit
// files lists all of them.
const specs = 7579

// outcome of a spec in one file.
type outcome int

const (
	skipped outcome = iota
	passed
	failed
)

// specNames returns made-up names in the manner of Kubernetes', always the same.
func specNames() []string {
	rng := rand.New(rand.NewPCG(2578, 1))
	pick := func(words []string) string { return words[rng.IntN(len(words))] }
	var (
		sigs     = []string{"sig-windows", "sig-network", "sig-storage", "sig-node", "sig-apps", "sig-scheduling", "sig-api-machinery", "sig-auth"}
		things   = []string{"CSI Volumes", "Services", "DNS", "Pods", "StatefulSet", "In-tree Volumes", "EndpointSlice", "Networking", "Container Runtime", "Secrets"}
		drivers  = []string{"[Driver: csi-hostpath]", "[Driver: local] [LocalVolumeType: dir-link-bindmounted]", "[Driver: pd.csi.storage.gke.io]", "[Feature:Windows]", "[NodeConformance]"}
		patterns = []string{"[Testpattern: Dynamic PV (default fs)] subPath", "[Testpattern: Pre-provisioned Snapshot (retain policy)] snapshottable", "[Testpattern: Inline-volume (ext4)] volumes", "Granular Checks: Pods", "when a pod's \"terminationGracePeriod\" is < 30s & it ignores SIGTERM"}
		verbs    = []string{"should support", "should be able to handle", "should not leak", "should verify that", "should fail to create", "should reject"}
		nouns    = []string{"an existing directory with the correct permissions", "restarting containers using a file as subpath", "intra-pod communication: http", "volume expansion while the pod is using it", "a pod whose 'runAsUserName' is unknown", "updates of the endpoints after a node was removed", "session affinity for a service of type NodePort", "a projected secret that was made immutable"}
		tags     = []string{"", " [Slow]", " [Serial]", " [Disruptive]", " [LinuxOnly]", " [Conformance]", " [Feature:VolumeSnapshotDataSource]"}
	)
	names := make([]string, specs)
	for i := range names {
		names[i] = fmt.Sprintf("[%s] %s %s %s %s %s, variant %d%s", pick(sigs), pick(things), pick(drivers), pick(patterns), pick(verbs), pick(nouns), i, pick(tags))
	}
	return names
}

// outcomes says what became of each spec in a file: about 40 ran, a few failed.
func outcomes(file int) []outcome {
	rng := rand.New(rand.NewPCG(2578, uint64(file)+2))
	out := make([]outcome, specs)
	for range 40 {
		out[rng.IntN(specs)] = passed
	}
	for range rng.IntN(4) {
		out[rng.IntN(specs)] = failed
	}
	return out
}

// generate writes the files, in the shape that e2e.test writes through Ginkgo's
// reporter: the indent, the attributes, the empty bodies of skipped cases, and
// timelines only for what failed.
func generate(dir string, files int) (bytes int64, err error) {
	names := specNames()
	for i := range files {
		n, err := generateFile(filepath.Join(dir, fileName(i)), names, outcomes(i), i)
		if err != nil {
			return 0, err
		}
		bytes += n
	}
	return bytes, nil
}

func fileName(i int) string { return fmt.Sprintf("junit_e2e_%03d.xml", i+1) }

func generateFile(path string, names []string, outcomes []outcome, seed int) (int64, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 256<<10)
	counts := map[outcome]int{}
	for _, o := range outcomes {
		counts[o]++
	}
	fmt.Fprint(w, xml.Header)
	fmt.Fprintf(w, `  <testsuites tests="%d" disabled="%d" errors="0" failures="%d" time="%d.483920174">`+"\n", specs, counts[skipped], counts[failed], 600+seed)
	fmt.Fprintf(w, `      <testsuite name="Kubernetes e2e suite" package="/home/prow/e2e" tests="%d" disabled="0" skipped="%d" errors="0" failures="%d" time="%d.483920174" timestamp="2026-01-02T12:56:00">`+"\n", specs, counts[skipped], counts[failed], 600+seed)
	fmt.Fprint(w, "          <properties>\n")
	for _, p := range []string{"SuiteSucceeded", "SuiteHasProgrammaticFocus", "SpecialSuiteFailureReason", "SuiteLabels", "RandomSeed", "RandomizeAllSpecs", "LabelFilter", "FocusStrings", "SkipStrings", "FlakeAttempts", "DryRun", "ParallelTotal"} {
		fmt.Fprintf(w, `              <property name="%s" value="%d"></property>`+"\n", p, seed)
	}
	fmt.Fprint(w, "          </properties>\n")
	for i, name := range names {
		status, seconds := "skipped", "0"
		switch outcomes[i] {
		case passed:
			status, seconds = "passed", fmt.Sprintf("%d.%09d", 2+i%37, i*1009)
		case failed:
			status, seconds = "failed", fmt.Sprintf("%d.%09d", 302+i%11, i*1009)
		}
		fmt.Fprint(w, `          <testcase name="`)
		escape(w, "[It] "+name)
		fmt.Fprintf(w, `" classname="Kubernetes e2e suite" status="%s" time="%s">`, status, seconds)
		switch outcomes[i] {
		case skipped:
			fmt.Fprint(w, "\n"+`              <skipped message="skipped"></skipped>`+"\n          ")
		case failed:
			fmt.Fprint(w, "\n"+`              <failure message="" type="failed">`)
			escape(w, failureText(i))
			fmt.Fprint(w, "</failure>\n"+`              <system-err>`)
			escape(w, timeline(i))
			fmt.Fprint(w, "</system-err>\n          ")
		}
		fmt.Fprint(w, "</testcase>\n")
	}
	fmt.Fprint(w, "      </testsuite>\n  </testsuites>")
	if err := w.Flush(); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), f.Close()
}

func escape(w io.Writer, s string) { _ = xml.EscapeText(w, []byte(s)) }

func failureText(i int) string {
	return fmt.Sprintf("[FAILED] timed out while waiting for pod \"webserver-%d\" to be <Running> & Ready\nIn [It] at: test/e2e/windows/hybrid_network.go:%d\n", i, 50+i%90) +
		strings.Repeat("\tgoroutine trace: k8s.io/kubernetes/test/e2e/framework.ExpectNoError(...)\n", 40)
}

func timeline(i int) string {
	var b strings.Builder
	for line := range 300 {
		fmt.Fprintf(&b, "  STEP: waiting for pod number %d of spec %d to be \"Running\" @ 01/02/26 12:%02d:%02d\n", line, i, line/60, line%60)
	}
	return b.String()
}
