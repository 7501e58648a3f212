// Package suite holds the tests of operational readiness that Kubernetes' own
// e2e tests lack. They are compiled, with the e2e framework of the cluster's
// Kubernetes version, into the test binary op-readiness.test, which speaks the
// interface of e2e.test: the same flags, the same lists, the same output.
package suite

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/testinit"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	e2enode "k8s.io/kubernetes/test/e2e/framework/node"
	_ "k8s.io/kubernetes/test/utils/format"
	imageutils "k8s.io/kubernetes/test/utils/image"
)

// sourceHash is the hash of the sources that the binary was built from. The
// linker sets it.
var sourceHash = "unknown"

// describe groups tests under the tags that all of them carry.
var describe = func(args ...any) bool {
	return framework.SIGDescribe("windows")(append([]any{framework.WithLabel("op-readiness")}, args...)...)
}

func TestMain(m *testing.M) {
	showVersion := flag.Bool("version", false, "Print the Kubernetes version of the e2e framework and exit.")
	showSource := flag.Bool("suite-version", false, "Print the hash of the tests' sources and exit.")
	options.register(flag.CommandLine)
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()

	err := options.check()
	switch {
	case *showVersion:
		fmt.Println(version.Get())
		os.Exit(0)
	case *showSource:
		fmt.Println(sourceHash)
		os.Exit(0)
	case flag.NArg() > 0:
		err = fmt.Errorf("unexpected arguments: %q", flag.Args())
	case err == nil && framework.TestContext.ListImages:
		// The framework would list the images of all of Kubernetes' tests.
		imageutils.Init(framework.TestContext.KubeTestRepoList)
		fmt.Println(imageutils.GetE2EImage(imageutils.Agnhost))
		fmt.Println(imageutils.GetPauseImageName())
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	framework.AfterReadingAllFlags(&framework.TestContext)
	os.Exit(m.Run())
}

func TestReadiness(t *testing.T) {
	logs.InitLogs()
	defer logs.FlushLogs()
	klog.EnableContextualLogging(true)
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := framework.CreateGinkgoConfig()
	// In e2e.test's own words: by them, namespaces are known to be of this process.
	klog.Infof("Starting e2e run %q on Ginkgo node %d", framework.RunID, suite.ParallelProcess)
	// And by its name, so that expressions that select tests mean the same.
	ginkgo.RunSpecs(t, "Kubernetes e2e suite", suite, reporter)
}

// Unlike e2e.test, nothing waits for the pods of kube-system: an add-on that is
// broken is a finding of some test, and no reason for the others not to run.
var _ = ginkgo.BeforeSuite(func(ctx context.Context) {
	client, err := framework.LoadClientset()
	framework.ExpectNoError(err, "loading the kubeconfig")
	bearTaints(ctx, client)
	framework.ExpectNoError(e2enode.WaitForAllNodesSchedulable(ctx, client, framework.NewTimeoutContext().NodeSchedulable))
	framework.ExpectNoError(options.checkAgainst(ctx, client))
})
