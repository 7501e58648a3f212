package binaries

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries/suite"
)

// Name is the file name of a binary, without the ".exe" of Windows.
type Name string

// The binaries that a [Store] can obtain.
const (
	APIServer         Name = "kube-apiserver"
	ControllerManager Name = "kube-controller-manager"
	Scheduler         Name = "kube-scheduler"
	Kubectl           Name = "kubectl"
	E2ETest           Name = "e2e.test"
	OpReadinessTest   Name = "op-readiness.test"
	Ginkgo            Name = "ginkgo"
	Kubelet           Name = "kubelet"
	Kubeadm           Name = "kubeadm"
	KubeProxy         Name = "kube-proxy"
	Agnhost           Name = "agnhost"
	Etcd              Name = "etcd"
	Kwok              Name = "kwok"
	Kwokctl           Name = "kwokctl"
)

// family is a project that is released as a whole, under one version.
type family string

const (
	kubernetes family = "kubernetes"
	etcd       family = "etcd"
	kwok       family = "kwok"
)

// families in the order in which they are obtained.
var families = []family{kubernetes, etcd, kwok}

// component is one family at one version: what has a folder and a lock.
type component struct {
	family  family
	version string
}

func (c component) String() string { return string(c.family) + " " + c.version }

// recipe says how one binary is built and how it proves what it is.
type recipe struct {
	family family
	// pkg is the Go package; a test binary is compiled with go test -c.
	pkg  string
	test bool
	// cold is how long building it takes at most on two cores and from a cold
	// cache, told to whoever waits.
	cold time.Duration
	// prove are the arguments that make it print its version, and says is
	// what it must print; %s stands for the version without its "v".
	prove []string
	says  string
}

var recipes = map[Name]recipe{
	APIServer:         {family: kubernetes, pkg: "k8s.io/kubernetes/cmd/kube-apiserver", cold: 6 * time.Minute, prove: []string{"--version"}, says: "Kubernetes v%s"},
	ControllerManager: {family: kubernetes, pkg: "k8s.io/kubernetes/cmd/kube-controller-manager", cold: 90 * time.Second, prove: []string{"--version"}, says: "Kubernetes v%s"},
	Scheduler:         {family: kubernetes, pkg: "k8s.io/kubernetes/cmd/kube-scheduler", cold: 30 * time.Second, prove: []string{"--version"}, says: "Kubernetes v%s"},
	Kubectl:           {family: kubernetes, pkg: "k8s.io/kubernetes/cmd/kubectl", cold: time.Minute, prove: []string{"version", "--client"}, says: "Client Version: v%s"},
	E2ETest:           {family: kubernetes, pkg: "k8s.io/kubernetes/test/e2e", test: true, cold: 5 * time.Minute, prove: []string{"--version"}, says: "v%s"},
	// The tests that Kubernetes lacks, with its e2e framework. Most of what they
	// are made of e2e.test is made of, too.
	OpReadinessTest: {family: kubernetes, pkg: suite.Module, test: true, cold: 4 * time.Minute, prove: []string{"--version"}, says: "v%s"},
	// ginkgo has a version of its own, the one that Kubernetes requires.
	Ginkgo:    {family: kubernetes, pkg: "github.com/onsi/ginkgo/v2/ginkgo", cold: 10 * time.Second, prove: []string{"version"}, says: "Ginkgo Version 2"},
	Kubelet:   {family: kubernetes, pkg: "k8s.io/kubernetes/cmd/kubelet", cold: 2 * time.Minute, prove: []string{"--version"}, says: "Kubernetes v%s"},
	Kubeadm:   {family: kubernetes, pkg: "k8s.io/kubernetes/cmd/kubeadm", cold: time.Minute, prove: []string{"version", "--output", "short"}, says: "v%s"},
	KubeProxy: {family: kubernetes, pkg: "k8s.io/kubernetes/cmd/kube-proxy", cold: 30 * time.Second, prove: []string{"--version"}, says: "Kubernetes v%s"},
	// agnhost is what most tests run in their containers. It has a version of
	// its own, which only its image is told.
	Agnhost: {family: kubernetes, pkg: "k8s.io/kubernetes/test/images/agnhost", cold: 30 * time.Second, prove: []string{"--version"}, says: "app version"},
	Etcd:    {family: etcd, pkg: "go.etcd.io/etcd/server/v3", cold: 40 * time.Second, prove: []string{"--version"}, says: "etcd Version: %s"},
	Kwok:    {family: kwok, pkg: "sigs.k8s.io/kwok/cmd/kwok", cold: time.Minute, prove: []string{"--version"}, says: "kwok version v%s"},
	Kwokctl: {family: kwok, pkg: "sigs.k8s.io/kwok/cmd/kwokctl", cold: time.Minute, prove: []string{"--version"}, says: "kwokctl version v%s"},
}

// from says of what a binary is built: its package, and for op-readiness.test the
// hash of the sources that come with this program.
func (n Name) from() string {
	if n == OpReadinessTest {
		return suite.Module + "@" + suite.Hash()
	}
	return recipes[n].pkg
}

// allNames returns every name that a [Store] knows, sorted.
func allNames() []Name {
	var names []Name
	for name := range recipes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ParseName returns the name that s spells, or an error that lists all names.
func ParseName(s string) (Name, error) {
	if _, ok := recipes[Name(s)]; ok {
		return Name(s), nil
	}
	var all []string
	for _, name := range allNames() {
		all = append(all, string(name))
	}
	return "", fmt.Errorf("unknown binary %q: use %s", s, strings.Join(all, ", "))
}

// oldestOwn is the oldest minor version of Kubernetes with whose e2e framework
// op-readiness.test can be built.
const oldestOwn = 34

// CheckVersion returns an error when there is no such binary for the Kubernetes
// version, which is one of [ParseVersion].
func CheckVersion(name Name, version string) error {
	if n, err := strconv.Atoi(minor(version)); name == OpReadinessTest && err == nil && n < oldestOwn {
		return fmt.Errorf("%s is for Kubernetes 1.%d and newer, and not for %s: name a newer version, or leave it out", name, oldestOwn, version)
	}
	return nil
}

// ofFamily returns the names of family f among names, sorted, each once.
func ofFamily(f family, names []Name) []Name {
	var of []Name
	for _, name := range names {
		if recipes[name].family == f {
			of = append(of, name)
		}
	}
	slices.Sort(of)
	return slices.Compact(of)
}

// join lists names for a sentence.
func join(names []Name) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = string(name)
	}
	return strings.Join(list, ", ")
}
