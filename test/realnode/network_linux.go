package realnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/test/program"
)

// The machine's address on the way into every box, of the range that RFC 2544
// sets aside for tests; simulated nodes have others of it. Nodes have the ones
// after it.
const hostAddress = "198.18.2.1"

// nodeAddresses and hostDevices are the addresses of nodes, and the machine's ends
// of the ways to them.
var (
	nodeAddresses = [maxNodes]string{"198.18.2.2", "198.18.2.3"}
	hostDevices   = [maxNodes]string{"opr-node", "opr-node-2"}
)

// Devices in a box: the way to the machine, and that to the other node.
const (
	hostSide = "eth0"
	peerSide = "eth1"
)

// joinMachine makes the way between the box and the machine. Both ends of each
// way have an address of their own and a route to the other's, and nothing else:
// when one node's way is gone, the machine keeps its address on the other's.
func (n *Node) joinMachine(ctx context.Context) error {
	if err := removeDevice(ctx, n.device); err != nil {
		return err
	}
	if err := commands(ctx,
		fmt.Sprintf("ip link add name %s type veth peer name %s netns %d", n.device, hostSide, n.box.pid),
		fmt.Sprintf("ip address add %s/32 dev %s", hostAddress, n.device),
		fmt.Sprintf("ip link set %s up", n.device),
		fmt.Sprintf("ip route add %s/32 dev %s src %s", n.Address, n.device, hostAddress),
	); err != nil {
		return err
	}
	_, err := n.box.run(ctx, "sh", "-ec", fmt.Sprintf(
		"ip address add %[1]s/32 dev %[2]s; ip link set %[2]s up; ip route add %[3]s/32 dev %[2]s; ip route add default via %[3]s",
		n.Address, hostSide, hostAddress))
	return err
}

// joinPods lets the machine reach the node's pods: the API server's proxy does.
func (n *Node) joinPods(ctx context.Context) error {
	return commands(ctx, fmt.Sprintf("ip route replace %s via %s dev %s onlink", n.podCIDR, n.Address, n.device))
}

// joinNodes makes the ways between all boxes that there are, anew. No packet
// between nodes passes the machine, which may not forward any.
func (b *Bed) joinNodes(ctx context.Context) error {
	for i, one := range b.Nodes {
		for _, other := range b.Nodes[i+1:] {
			// Whichever comes later joins them; also when one restarts itself
			// meanwhile.
			if one.box.alive() && other.box.alive() {
				if err := join(ctx, one, other); err != nil && one.box.alive() && other.box.alive() {
					return err
				}
			}
		}
	}
	return nil
}

// join makes the way between two nodes.
func join(ctx context.Context, one, other *Node) error {
	if _, err := one.box.run(ctx, "sh", "-c", "ip link delete "+peerSide+" 2>/dev/null || true"); err != nil {
		return err
	}
	if err := commands(ctx, fmt.Sprintf("ip link add name %[1]s netns %[2]d type veth peer name %[1]s netns %[3]d",
		peerSide, one.box.pid, other.box.pid)); err != nil {
		return err
	}
	return errors.Join(one.routeTo(ctx, other), other.routeTo(ctx, one))
}

// routeTo leads from a node to another, and to its pods if it has some already.
func (n *Node) routeTo(ctx context.Context, other *Node) error {
	script := fmt.Sprintf("ip address replace %[1]s/32 dev %[2]s; ip link set %[2]s up; ip route replace %[3]s/32 dev %[2]s src %[1]s",
		n.Address, peerSide, other.Address)
	if other.podCIDR != "" {
		script += fmt.Sprintf("; ip route replace %s via %s dev %s onlink src %s", other.podCIDR, other.Address, peerSide, n.Address)
	}
	_, err := n.box.run(ctx, "sh", "-ec", script)
	return err
}

// removeDevice removes a network device of the machine, if it is there.
func removeDevice(ctx context.Context, name string) error {
	if !hasDevice(name) {
		return nil
	}
	_, err := program.Output(exec.CommandContext(ctx, "ip", "link", "delete", name))
	if err != nil && hasDevice(name) {
		return err
	}
	return nil // or it went with its box meanwhile
}

func hasDevice(name string) bool {
	_, err := net.InterfaceByName(name)
	return err == nil
}

// commands runs commands on the machine, one after the other.
func commands(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		args := strings.Fields(line)
		if _, err := program.Output(exec.CommandContext(ctx, args[0], args[1:]...)); err != nil {
			return err
		}
	}
	return nil
}
