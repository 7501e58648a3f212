package realnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
	"github.com/windows-op-readiness/windows-op-readiness/internal/target/provider/kwok"
)

// running is what of a node is running.
type running struct {
	paths
	provider *kwok.Provider
	name     string
	box      *box
	daemons  []*daemon
	// made are folders that cover nothing: they were not there before.
	made   []string
	unlock func()
}

// covered are the folders whose place is fixed in what a node runs.
var covered = []string{"/var/log", "/var/lib/cni", "/var/lib/kubelet"}

// startTimeout is how long containerd, the kubelet and kube-proxy may take to
// become ready.
const startTimeout = 3 * time.Minute

// Up makes the cluster and the node, and waits until the node is ready. It
// returns an [*UnfitError] when this machine cannot have one. Without error,
// the caller ends with [Node.Down].
func Up(ctx context.Context, o Options) (_ *Node, err error) {
	if err := Check(ctx); err != nil {
		return nil, err
	}
	programs, err := o.Binaries.Get(ctx, o.Cluster.KubernetesVersion, Needs()...)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	n := &Node{running: running{paths: paths{StateDir}, name: o.Cluster.Name, unlock: unlock}}
	n.provider = &kwok.Provider{Binaries: o.Binaries, Dir: n.clusters(), Progress: o.Progress}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("making a real node: %w", err), n.Down())
		}
	}()
	if err := clean(ctx); err != nil {
		return nil, fmt.Errorf("removing what an earlier one left: %w", err)
	}
	for _, dir := range []string{n.dir, n.own(), n.file("logs")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	if err := n.makeBox(ctx); err != nil {
		return nil, err
	}
	o.Cluster.BindAddress, o.Cluster.JoinAddress, o.Cluster.Kubeconfig = "0.0.0.0", hostAddress, ""
	if n.Cluster, err = n.provider.Up(ctx, o.Cluster); err != nil {
		return nil, err
	}
	tell(o.Progress, "starting containerd, kubelet and kube-proxy (usually 10 to 20 seconds)")
	limited, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	return n, n.start(limited, programs)
}

// makeBox makes the box and the way into it.
func (n *Node) makeBox(ctx context.Context) error {
	for _, dir := range covered {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			n.made = append(n.made, dir)
			if err := os.WriteFile(n.file("made"), []byte(strings.Join(n.made, "\n")), 0o600); err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
	}
	var err error
	if n.box, err = newBox(ctx, n.own(), covered...); err != nil {
		return err
	}
	for _, command := range []string{
		fmt.Sprintf("ip link add name %s type veth peer name %s netns %d", hostDevice, nodeDevice, n.box.pid),
		fmt.Sprintf("ip address add %s/30 dev %s", hostAddress, hostDevice),
		fmt.Sprintf("ip link set %s up", hostDevice),
	} {
		if _, err := output(exec.CommandContext(ctx, "sh", "-c", command)); err != nil {
			return err
		}
	}
	_, err = n.box.run(ctx, "sh", "-ec", fmt.Sprintf("ip address add %s/30 dev %s; ip link set %s up; ip route add default via %s",
		nodeAddress, nodeDevice, nodeDevice, hostAddress))
	return err
}

// start runs the node's programs and waits until it is ready.
func (n *Node) start(ctx context.Context, programs map[binaries.Name]string) error {
	if err := n.prepare(ctx, programs); err != nil {
		return err
	}
	containerd, err := n.daemon("containerd", "containerd", "--config", n.file("containerd.toml"))
	if err != nil {
		return err
	}
	if err := containerd.await(ctx, func(ctx context.Context) error {
		_, err := n.ctr(ctx, "version")
		return err
	}); err != nil {
		return err
	}
	if _, err := n.ctr(ctx, "images", "import", "--no-unpack=false", n.file("images.tar")); err != nil {
		return err
	}
	if err := os.Remove(n.file("images.tar")); err != nil {
		return err
	}
	if err := makeCgroups(); err != nil {
		return err
	}
	client, err := n.client()
	if err != nil {
		return err
	}
	kubelet, err := n.daemon("kubelet", programs[binaries.Kubelet], "--config", n.file("kubelet.json"), "--kubeconfig", n.file("kubeconfig"),
		"--hostname-override", NodeName, "--node-ip", nodeAddress, "--root-dir", n.file("kubelet"))
	if err != nil {
		return err
	}
	var podCIDR string
	if err := kubelet.await(ctx, func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if podCIDR = node.Spec.PodCIDR; podCIDR == "" {
			return errors.New("the node has no range of pod addresses")
		}
		return nil
	}); err != nil {
		return err
	}
	if err := n.writeCNI(podCIDR); err != nil {
		return err
	}
	// The API server's proxy reaches pods from outside the box.
	if _, err := output(exec.CommandContext(ctx, "ip", "route", "add", podCIDR, "via", nodeAddress)); err != nil {
		return err
	}
	proxy, err := n.daemon("kube-proxy", programs[binaries.KubeProxy], "--config", n.file("kube-proxy.json"))
	if err != nil {
		return err
	}
	if err := proxy.await(ctx, func(ctx context.Context) error {
		_, err := n.box.run(ctx, "nft", "list", "map", "ip", "kube-proxy", "service-ips")
		return err
	}); err != nil {
		return err
	}
	return kubelet.await(ctx, func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return ready(node)
	})
}

// prepare writes everything that the node's programs read.
func (n *Node) prepare(ctx context.Context, programs map[binaries.Name]string) error {
	list, err := output(exec.CommandContext(ctx, programs[binaries.E2ETest], "--list-images"))
	if err != nil {
		return err
	}
	if n.Images, err = pickImages(list); err != nil {
		return err
	}
	box, err := busybox()
	if err != nil {
		return err
	}
	commands, err := output(exec.CommandContext(ctx, box, "--list"))
	if err != nil {
		return err
	}
	if err := writeImages(n.file("images.tar"), n.Images, programs[binaries.Agnhost], box, strings.Fields(commands)); err != nil {
		return err
	}
	cni, err := cniDir()
	if err != nil {
		return err
	}
	return errors.Join(n.writeKubeconfig(), n.writeContainerd(n.Images.Pause, cni), n.writeKubelet(), n.writeProxy())
}

// writeKubeconfig writes the cluster's kubeconfig as it is used in the box,
// and the authority whose clients the kubelet accepts.
func (n *Node) writeKubeconfig() error {
	config, err := clientcmd.LoadFromFile(n.Cluster.Kubeconfig)
	if err != nil {
		return err
	}
	cluster := config.Clusters[config.Contexts[n.Cluster.Context].Cluster]
	server, err := url.Parse(cluster.Server)
	if err != nil {
		return err
	}
	server.Host = net.JoinHostPort(hostAddress, server.Port())
	cluster.Server = server.String()
	config.CurrentContext = n.Cluster.Context
	if err := os.WriteFile(n.file("ca.crt"), cluster.CertificateAuthorityData, 0o600); err != nil {
		return err
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return os.WriteFile(n.file("kubeconfig"), data, 0o600)
}

func (n *Node) client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", n.Cluster.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// ctr runs containerd's own client in the namespace that the kubelet uses.
func (n *Node) ctr(ctx context.Context, args ...string) (string, error) {
	return n.box.run(ctx, append([]string{"ctr", "--address", containerdSocket, "--namespace", "k8s.io"}, args...)...)
}

// ready says why pods cannot be put on the node, or nil.
func ready(node *corev1.Node) error {
	for _, taint := range node.Spec.Taints {
		return fmt.Errorf("the node has the taint %s", taint.Key)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return fmt.Errorf("the node is not ready: %s", condition.Message)
		}
	}
	return nil
}

// Down removes the cluster and the node, and all that is theirs.
func (n *Node) Down() error {
	defer n.unlock()
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("not done within a minute"))
	defer cancel()
	if n.box != nil {
		n.box.end()
	}
	for _, d := range n.daemons {
		<-d.ended
	}
	if err := clean(ctx); err != nil {
		return fmt.Errorf("removing the real node: %w", err)
	}
	return nil
}

// Log returns the end of what containerd, kubelet or kube-proxy has said.
func (n *Node) Log(program string) string {
	const limit = 8 << 10
	data, err := os.ReadFile(n.log(program))
	if err != nil {
		return err.Error()
	}
	if len(data) > limit {
		data = data[len(data)-limit:]
	}
	return strings.TrimSpace(string(data))
}

// Clean removes what killed processes have left of a real node. While there
// is one, it waits.
func Clean(ctx context.Context, progress io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New("removing a real node takes root")
	}
	unlock, err := lock(ctx, progress)
	if err != nil {
		return err
	}
	defer unlock()
	return clean(ctx)
}

// clean removes everything of a node. The caller has the lock.
func clean(ctx context.Context) error {
	p := paths{StateDir}
	if err := endLeftBoxes(ctx, p.own()); err != nil {
		return err
	}
	var faults []error
	clusters := &kwok.Provider{Dir: p.clusters()}
	if _, err := os.Stat(p.clusters()); err == nil {
		left, err := clusters.List(ctx)
		faults = append(faults, err)
		for _, c := range left {
			faults = append(faults, clusters.Down(ctx, c.Name))
		}
	}
	if _, err := net.InterfaceByName(hostDevice); err == nil {
		_, err := output(exec.CommandContext(ctx, "ip", "link", "delete", hostDevice))
		if _, found := net.InterfaceByName(hostDevice); found == nil {
			faults = append(faults, err)
		}
	}
	faults = append(faults, removeCgroups())
	made, _ := os.ReadFile(p.file("made"))
	for _, dir := range strings.Fields(string(made)) {
		// Whoever else has put something there keeps it.
		_ = os.Remove(dir)
	}
	if err := errors.Join(faults...); err != nil {
		return err // the folder is what knows of the rest
	}
	return os.RemoveAll(p.dir)
}

// lock waits until this process alone may have a real node on this machine.
// The lock is a name of the kernel's: it leaves no file, and goes with the
// process.
func lock(ctx context.Context, progress io.Writer) (unlock func(), err error) {
	for told := false; ; told = true {
		listener, err := net.Listen("unix", "@op-readiness-node")
		if err == nil {
			return func() { listener.Close() }, nil
		}
		if !told {
			tell(progress, "waiting for another process that has this machine's only one")
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for this machine's only real node: %w", context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func tell(progress io.Writer, what string) {
	if progress != nil {
		fmt.Fprintf(progress, "real node: %s\n", what)
	}
}

// daemon is a program that runs in the box until that ends.
type daemon struct {
	name  string
	node  *Node
	ended chan struct{}
}

// daemon starts a program in the box.
func (n *Node) daemon(name string, args ...string) (*daemon, error) {
	log, err := os.Create(n.log(name))
	if err != nil {
		return nil, err
	}
	cmd := n.box.command(context.Background(), args...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + n.dir, "TMPDIR=" + n.dir}
	err = cmd.Start()
	log.Close()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	d := &daemon{name: name, node: n, ended: make(chan struct{})}
	n.daemons = append(n.daemons, d)
	go func() {
		defer close(d.ended)
		_ = cmd.Wait()
	}()
	return d, nil
}

// await waits until probe succeeds, and fails at once when the program ends.
func (d *daemon) await(ctx context.Context, probe func(context.Context) error) error {
	for {
		last := probe(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-d.ended:
			return fmt.Errorf("%s ended; its log ends with\n\t%s", d.name, strings.ReplaceAll(d.node.Log(d.name), "\n", "\n\t"))
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w (%w); its log ends with\n\t%s", d.name, context.Cause(ctx), last,
				strings.ReplaceAll(d.node.Log(d.name), "\n", "\n\t"))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
