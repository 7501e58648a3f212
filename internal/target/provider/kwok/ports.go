package kwok

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// ports are what a cluster listens on.
type ports struct {
	etcd, etcdPeer, apiServer, controllerManager, scheduler, kwok int
}

// The range to choose from: below the ports that Linux gives to outgoing
// connections and that Kubernetes gives to Services of type NodePort. Choosing
// at random makes it unlikely that two clusters in the making want the same.
const firstPort, lastPort = 20000, 29999

// freePorts returns ports that nothing listens on, on this address or any
// other.
func freePorts(bindAddress string) (ports, error) {
	var chosen ports
	var held []net.Listener
	defer func() {
		for _, listener := range held {
			listener.Close()
		}
	}()
	hold := func(host string, port int) bool {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			held = append(held, listener)
		}
		return err == nil
	}
	for _, port := range []*int{&chosen.etcd, &chosen.etcdPeer, &chosen.apiServer, &chosen.controllerManager, &chosen.scheduler, &chosen.kwok} {
		for tries := 0; *port == 0; tries++ {
			if tries == 1000 {
				return ports{}, fmt.Errorf("no free port between %d and %d on %s", firstPort, lastPort, bindAddress)
			}
			candidate := firstPort + rand.IntN(lastPort-firstPort+1)
			// First on every address, let go again, to see that nobody at all
			// uses it; then held on the one that is wanted.
			if hold("", candidate) {
				held[len(held)-1].Close()
				held = held[:len(held)-1]
				if hold(bindAddress, candidate) {
					*port = candidate
				}
			}
		}
	}
	return chosen, nil
}
