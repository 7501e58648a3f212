// Package cluster reaches a Kubernetes cluster: it connects, reads the facts
// that a run depends on, and removes what tests left behind.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// errNoKubeconfig says that nothing tells which cluster is meant.
var errNoKubeconfig = errors.New("no kubeconfig: name one with --kubeconfig or $KUBECONFIG, or make a simulated cluster with 'op-readiness cluster up kwok'")

// Target says which cluster is meant.
type Target struct {
	// Kubeconfig is a file; "" means the pod's own cluster.
	Kubeconfig string
	// Context is one of the file's; "" means its current one.
	Context string
}

// Locate finds the kubeconfig as client-go does: the flag's, the one that
// $KUBECONFIG names, the one in the home folder, or none inside a pod. It
// does not read the file.
func Locate(flag, context string, getenv func(string) string) (Target, error) {
	path := flag
	if path == "" {
		path = getenv(clientcmd.RecommendedConfigPathEnvVar)
		if files := filepath.SplitList(path); len(files) > 1 {
			return Target{}, fmt.Errorf("$KUBECONFIG names %d files, and e2e.test reads one: merge them (kubectl config view --raw --flatten) and name the result with --kubeconfig", len(files))
		}
	}
	if path == "" {
		if home := getenv("HOME"); home != "" {
			if p := filepath.Join(home, ".kube", "config"); exists(p) {
				path = p
			}
		}
	}
	if path == "" {
		if getenv("KUBERNETES_SERVICE_HOST") == "" {
			return Target{}, errNoKubeconfig
		}
		return Target{Context: context}, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return Target{}, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return Target{Kubeconfig: abs, Context: context}, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Cluster is a connection to a cluster.
type Cluster struct {
	// Server is the API server's address.
	Server  string
	client  kubernetes.Interface
	dynamic dynamic.Interface
	target  Target
	limit   time.Duration // of a request
	outages *outages
}

// Client returns the connection's client, for what else talks to the cluster.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Dynamic returns a client for APIs that are newer than this program's types.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// requestTimeout bounds every request: a server that does not answer is an
// error, not a wait.
const requestTimeout = 30 * time.Second

// Connect reads the target's kubeconfig. It sends no request yet.
func Connect(t Target) (*Cluster, error) { return connect(t, requestTimeout, &outages{}) }

// ConnectForStreams is [Connect] for answers that take their time, such as logs: its
// requests end with their context alone.
func ConnectForStreams(t Target) (*Cluster, error) { return connect(t, 0, &outages{}) }

// Beside makes another connection to the same cluster, whose requests do not queue
// behind those of this one. What one sees of outages, [Cluster.Outages] of both tells.
func (c *Cluster) Beside() (*Cluster, error) { return connect(c.target, c.limit, c.outages) }

func connect(t Target, limit time.Duration, seen *outages) (*Cluster, error) {
	config, err := restConfig(t)
	if err != nil {
		return nil, err
	}
	config.Timeout = limit
	config.UserAgent = FieldManager
	// The default of 5 requests a second is for controllers, which have time.
	config.QPS, config.Burst = 50, 100
	// Every warning of the API server would go to standard error.
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{seen, next, limit} })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", t.Kubeconfig, err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", t.Kubeconfig, err)
	}
	return &Cluster{Server: config.Host, client: client, dynamic: dyn, target: t, limit: limit, outages: seen}, nil
}

func restConfig(t Target) (*rest.Config, error) {
	if t.Kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("%w (inside this pod: %w)", errNoKubeconfig, err)
		}
		return config, nil
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: t.Kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: t.Context},
	)
	config, err := loader.ClientConfig()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no kubeconfig at %s", t.Kubeconfig)
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("kubeconfig %s names no cluster", t.Kubeconfig)
	case err != nil:
		return nil, fmt.Errorf("kubeconfig %s: %w", t.Kubeconfig, err)
	}
	return config, nil
}

// Nodes reads the nodes, as the API has them.
func (c *Cluster) Nodes(ctx context.Context) ([]corev1.Node, error) {
	nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of %s: %w", c.Server, err)
	}
	return nodes.Items, nil
}

// WindowsPlaces returns how many Windows nodes are ready and schedulable, and how many
// more pods they take.
func (c *Cluster) WindowsPlaces(ctx context.Context) (nodes, free int, err error) {
	all, err := c.Nodes(ctx)
	if err != nil {
		return 0, 0, err
	}
	places := map[string]int{}
	for i := range all {
		n := &all[i]
		if facts := nodeFacts(n); facts.OS != specs.Windows || !facts.Ready || facts.Unschedulable {
			continue
		}
		nodes++
		places[n.Name] = int(n.Status.Allocatable.Pods().Value())
	}
	pods, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"})
	if err != nil {
		return 0, 0, fmt.Errorf("listing pods: %w", err)
	}
	for i := range pods.Items {
		if _, ok := places[pods.Items[i].Spec.NodeName]; ok {
			places[pods.Items[i].Spec.NodeName]--
		}
	}
	for _, left := range places {
		free += max(left, 0)
	}
	return nodes, free, nil
}

// APIGroups asks for the API groups that are served, in order.
func (c *Cluster) APIGroups() ([]string, error) {
	groups, err := c.client.Discovery().ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("listing the API groups of %s: %w", c.Server, err)
	}
	names := make([]string, 0, len(groups.Groups))
	for _, g := range groups.Groups {
		names = append(names, g.Name)
	}
	slices.Sort(names)
	return names, nil
}

// ServerVersion asks the API server for its version, such as "v1.36.3".
func (c *Cluster) ServerVersion(ctx context.Context) (string, error) {
	// The discovery client takes no context, so the request is made by hand.
	// Retries would hide what is wrong behind "context deadline exceeded".
	answer := c.client.Discovery().RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx)
	if err := answer.Error(); err != nil {
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			return "", fmt.Errorf("the API server %s does not report its version: %w", c.Server, err)
		}
		return "", fmt.Errorf("the API server %s does not answer: %w", c.Server, err)
	}
	data, err := answer.Raw()
	if err != nil {
		return "", fmt.Errorf("the API server %s does not answer: %w", c.Server, err)
	}
	return parseServerVersion(data, c.Server)
}

// Node reads the facts of one node.
func (c *Cluster) Node(ctx context.Context, name string) (result.Node, error) {
	n, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return result.Node{}, err
	}
	return nodeFacts(n), nil
}

func nodeFacts(n *corev1.Node) result.Node {
	info := &n.Status.NodeInfo
	_, controlPlane := n.Labels["node-role.kubernetes.io/control-plane"]
	out := result.Node{
		Name:             n.Name,
		OS:               specs.OS(info.OperatingSystem),
		OSImage:          info.OSImage,
		WindowsBuild:     n.Labels[corev1.LabelWindowsBuild],
		KubeletVersion:   info.KubeletVersion,
		ContainerRuntime: info.ContainerRuntimeVersion,
		Architecture:     info.Architecture,
		Simulated:        simulated(n),
		Unschedulable:    n.Spec.Unschedulable && !cordonedByRun(n),
		ControlPlane:     controlPlane,
		PodCIDRs:         n.Spec.PodCIDRs,
	}
	if out.OS == "" {
		out.OS = specs.OS(n.Labels[corev1.LabelOSStable])
	}
	if out.Contradiction = contradiction(n); out.Contradiction != "" {
		out.OS = "" // it proves nothing
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Ready = c.Status == corev1.ConditionTrue
		}
	}
	for _, t := range ownTaints(n) {
		if t.Effect != corev1.TaintEffectPreferNoSchedule {
			out.Taints = append(out.Taints, t.ToString())
		}
	}
	return out
}

// Healthy reports whether the API server answers.
func (c *Cluster) Healthy(ctx context.Context) error {
	_, err := c.ServerVersion(ctx)
	return err
}

// SuiteLabel is what the e2e framework puts on every namespace that a test
// makes; its value is the id of the e2e.test process.
const SuiteLabel = "e2e-run"

// RemoveNamespaces deletes the namespaces of the given e2e.test processes and
// waits until they are gone, through outages ([Persist]). It returns how many
// there were; those that are left when ctx ends are named in the error.
func (c *Cluster) RemoveNamespaces(ctx context.Context, suiteRunIDs []string) (int, error) {
	if len(suiteRunIDs) == 0 {
		return 0, nil
	}
	// The ids come from what a process printed: they are checked here.
	ours, err := labels.NewRequirement(SuiteLabel, selection.In, suiteRunIDs)
	if err != nil {
		return 0, fmt.Errorf("finding namespaces that tests left: %w", err)
	}
	selector := metav1.ListOptions{LabelSelector: ours.String()}
	namespaces := c.client.CoreV1().Namespaces()
	var list *corev1.NamespaceList
	look := func(ctx context.Context) (err error) {
		list, err = namespaces.List(ctx, selector)
		return err
	}
	if err := Persist(ctx, look); err != nil {
		return 0, fmt.Errorf("listing namespaces that tests left: %w", err)
	}
	found := len(list.Items)
	for _, ns := range list.Items {
		err := Persist(ctx, func(ctx context.Context) error {
			return namespaces.Delete(ctx, ns.Name, metav1.DeleteOptions{})
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return 0, fmt.Errorf("deleting namespace %s, which a test left: %w", ns.Name, err)
		}
	}
	var left []string
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		if err := Persist(ctx, look); err != nil {
			return false, err
		}
		left = left[:0]
		for _, ns := range list.Items {
			left = append(left, ns.Name)
		}
		return len(left) == 0, nil
	})
	if err != nil {
		return found, fmt.Errorf("namespaces that tests left are not gone yet: %s: %w", strings.Join(left, ", "), err)
	}
	return found, nil
}

// errSkew says that an e2e.test cannot judge a server.
var errSkew = errors.New("e2e.test and the cluster are too far apart")

// CheckSkew compares e2e.test's version with the server's. The suite of one
// minor version is written for servers of that version: one minor version
// apart is a warning, more is an error.
func CheckSkew(e2e, server string) (warning string, err error) {
	e, err := version.ParseGeneric(e2e)
	if err != nil {
		return "", fmt.Errorf("version of e2e.test: %w", err)
	}
	s, err := version.ParseGeneric(server)
	if err != nil {
		return "", fmt.Errorf("version of the API server: %w", err)
	}
	apart := int(e.Minor()) - int(s.Minor())
	switch {
	case e.Major() != s.Major() || apart < -1 || apart > 1:
		return "", fmt.Errorf("%w: e2e.test is %s, the API server %s: name --kubernetes-version v%d.%d.%d, or an --e2e-binary of that version",
			errSkew, e2e, server, s.Major(), s.Minor(), s.Patch())
	case apart != 0:
		return fmt.Sprintf("e2e.test is %s and the API server %s: tests of another minor version can fail without cause", e2e, server), nil
	}
	return "", nil
}

// Kubectl is the absolute path of the kubectl that is on the PATH; "" where
// there is none.
func Kubectl() string {
	path, err := exec.LookPath("kubectl")
	if err != nil {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
