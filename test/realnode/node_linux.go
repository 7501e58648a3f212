package realnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/binaries"
)

// boxed is what of a node is in its box, or leads there.
type boxed struct {
	paths
	bed    *Bed
	first  bool
	device string // the machine's end of the way to the box
	cgroup string

	// mu is held while the node's programs, or their configurations, change.
	mu       sync.Mutex
	daemons  map[Program]*daemon
	changes  map[Program]Config
	bootID   string
	next     Boot
	imported bool

	// What the other nodes see, too: guarded by the bed's joining.
	box     *box
	podCIDR string
}

func newNode(b *Bed, index int) *Node {
	name := [maxNodes]string{NodeName, SecondNodeName}[index]
	return &Node{Name: name, Address: nodeAddresses[index], boxed: boxed{
		paths: b.node(name), bed: b, first: index == 0, device: hostDevices[index], cgroup: nodeCgroup(index),
		daemons: map[Program]*daemon{}, changes: map[Program]Config{}, bootID: newBootID(),
	}}
}

func newBootID() string { return string(uuid.NewUUID()) }

// makeBox makes the box and the ways into it.
func (n *Node) makeBox(ctx context.Context) error {
	box, err := newBox(ctx, n.own(), n.bootID, append([]string{localPrograms}, covered...)...)
	if err != nil {
		return err
	}
	n.bed.joining.Lock()
	defer n.bed.joining.Unlock()
	n.box = box
	if err := n.joinMachine(ctx); err != nil {
		return err
	}
	return n.bed.joinNodes(ctx)
}

// end ends the box and everything in it.
func (n *Node) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.endBox()
}

func (n *Node) endBox() {
	n.bed.joining.Lock()
	defer n.bed.joining.Unlock()
	if n.box == nil {
		return
	}
	n.box.end()
	n.box = nil
	for name, d := range n.daemons {
		<-d.ended
		delete(n.daemons, name)
	}
}

// begin starts the node's programs for the first time, and waits until it is
// ready.
func (n *Node) begin(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	cni, err := cniDir()
	if err != nil {
		return err
	}
	if err := errors.Join(n.writeContainerd(n.bed.Images.Pause, cni), n.writeKubelet(), n.writeProxy()); err != nil {
		return err
	}
	return n.startAll(ctx, Boot{})
}

// startAll starts the programs in a box that has none.
func (n *Node) startAll(ctx context.Context, boot Boot) error {
	// No pod starts with the configuration of the boot before.
	if err := errors.Join(makeCgroups(n.cgroup), preferPods(n.cgroup), n.writeCNI("", NetworkMissing)); err != nil {
		return err
	}
	programs := []Program{Containerd, Kubelet, KubeProxy}
	if n.first && n.bed.options.CoreDNS != "" {
		programs = slices.Insert(programs, 2, CoreDNS)
	}
	for _, program := range programs {
		if program == KubeProxy {
			if err := n.connectPods(ctx, boot.Network); err != nil {
				return err
			}
		}
		if slices.Contains(boot.Without, program) {
			continue
		}
		if err := n.launch(ctx, program); err != nil {
			return err
		}
	}
	if !n.complete() {
		return nil
	}
	return n.awaitReady(ctx)
}

// connectPods makes the pods' network, once it is known which addresses they have.
func (n *Node) connectPods(ctx context.Context, network Network) error {
	if err := n.writeCNI(n.podCIDR, network); err != nil {
		return err
	}
	n.bed.joining.Lock()
	defer n.bed.joining.Unlock()
	return errors.Join(n.joinPods(ctx), n.bed.joinNodes(ctx))
}

// complete tells whether the node has all without which it cannot be ready.
func (n *Node) complete() bool {
	return n.daemons[Containerd] != nil && n.daemons[Kubelet] != nil && n.hasCNI()
}

// launch starts a program and waits until it does its work.
func (n *Node) launch(ctx context.Context, program Program) error {
	programs := n.bed.programs
	switch program {
	case Containerd:
		d, err := n.daemon(program, "containerd", "--config", n.file("containerd.toml"))
		if err != nil {
			return err
		}
		if err := d.await(ctx, func(ctx context.Context) error {
			_, err := n.ctr(ctx, "version")
			return err
		}); err != nil {
			return err
		}
		return n.importImages(ctx)
	case Kubelet:
		since := time.Now()
		d, err := n.daemon(program, programs[binaries.Kubelet], "--config", n.file("kubelet.json"), "--kubeconfig", n.bed.kubeconfig(),
			"--hostname-override", n.Name, "--node-ip", n.Address, "--root-dir", n.file("kubelet"))
		if err != nil {
			return err
		}
		return d.await(ctx, func(ctx context.Context) error { return n.registered(ctx, since) })
	case CoreDNS:
		d, err := n.daemon(program, n.bed.options.CoreDNS, "-conf", n.bed.corefile())
		if err != nil {
			return err
		}
		return d.await(ctx, func(ctx context.Context) error { return resolves(ctx, n.Address) })
	case KubeProxy:
		d, err := n.daemon(program, programs[binaries.KubeProxy], "--config", n.file("kube-proxy.json"))
		if err != nil {
			return err
		}
		return d.await(ctx, n.proxied)
	}
	return fmt.Errorf("%s has no program %q: use %s, %s, %s, %s", n.Name, program, Containerd, Kubelet, KubeProxy, CoreDNS)
}

// importImages gives containerd the images, which it keeps.
func (n *Node) importImages(ctx context.Context) error {
	if n.imported {
		return nil
	}
	_, err := n.ctr(ctx, "images", "import", "--no-unpack=false", n.bed.archive())
	n.imported = err == nil
	return err
}

// ctr runs containerd's own client in the namespace that the kubelet uses.
func (n *Node) ctr(ctx context.Context, args ...string) (string, error) {
	return n.box.run(ctx, append([]string{"ctr", "--address", containerdSocket, "--namespace", "k8s.io"}, args...)...)
}

// registered says what the kubelet that was started then has not done yet; nil
// when it serves, has reported, and the node has been given addresses for pods.
func (n *Node) registered(ctx context.Context, since time.Time) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(n.Address, "10250"))
	if err != nil {
		return err
	}
	conn.Close()
	node, err := n.bed.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if node.Spec.PodCIDR == "" {
		return errors.New("the node has no range of pod addresses")
	}
	if node.Status.NodeInfo.BootID != n.bootID {
		return errors.New("the node's boot id is an earlier one")
	}
	for i := range node.Status.Conditions {
		// The API has whole seconds.
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && !c.LastHeartbeatTime.Time.Before(since.Truncate(time.Second)) {
			n.bed.joining.Lock()
			defer n.bed.joining.Unlock()
			n.podCIDR = node.Spec.PodCIDR
			return nil
		}
	}
	return errors.New("the kubelet has not reported yet")
}

// awaitReady waits until pods can be put on the node.
func (n *Node) awaitReady(ctx context.Context) error {
	return n.daemons[Kubelet].await(ctx, func(ctx context.Context) error {
		node, err := n.bed.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return ready(node)
	})
}

// ready says why pods cannot be put on the node, or nil.
func ready(node *corev1.Node) error {
	for _, taint := range node.Spec.Taints {
		if strings.HasPrefix(taint.Key, "node.kubernetes.io/") && taint.Key != corev1.TaintNodeUnschedulable {
			return fmt.Errorf("the node has the taint %s", taint.Key)
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return fmt.Errorf("the node is not ready: %s", condition.Message)
		}
	}
	return nil
}

// synced is what kube-proxy says once it has written all rules.
var synced = regexp.MustCompile(`(?m)^kubeproxy_sync_proxy_rules_last_timestamp_seconds\{ip_family="IPv4"\} [1-9]`)

// direct asks a node itself, each time anew.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}

// proxied says that kube-proxy has not written the rules of Services since it
// started; nil when it has.
func (n *Node) proxied(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s:%d/metrics", n.Address, proxyMetrics), nil)
	if err != nil {
		return err
	}
	response, err := direct.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err == nil && !synced.Match(said) {
		err = errors.New("it has not written the rules of Services")
	}
	return err
}

// Log returns the end of what a program has said, since the node was made.
func (n *Node) Log(program Program) string {
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
