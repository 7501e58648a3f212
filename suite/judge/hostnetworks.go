package judge

import (
	"fmt"
	"slices"
	"strings"
)

// HostNetworks is what a process sees of the host networks of a node, and of the one
// that is its test's own.
type HostNetworks struct {
	// Failed is why it sees nothing; "" where it does.
	Failed   string        `json:"failed"`
	Networks []HostNetwork `json:"networks"`
	Own      []struct {
		Type    string   `json:"type"`
		Subnets []string `json:"subnets"`
	} `json:"own"`
	// Endpoints are those of its own network, with their rules: action, direction,
	// protocol and ports.
	Endpoints []struct {
		Address string   `json:"address"`
		Rules   []string `json:"rules"`
	} `json:"endpoints"`
}

// HostNetwork is one of them.
type HostNetwork struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func (n HostNetwork) String() string { return fmt.Sprintf("%s (%s)", n.Name, n.ID) }

// ReadHostNetworks reads them from the log of script hcn.
func ReadHostNetworks(log string) (*HostNetworks, error) {
	var h HostNetworks
	if err := answer(log, &h); err != nil {
		return nil, fmt.Errorf("script hcn: %w", err)
	}
	return &h, nil
}

// named returns how many networks have a name.
func (h *HostNetworks) named(name string) int {
	n := 0
	for _, network := range h.Networks {
		if network.Name == name {
			n++
		}
	}
	return n
}

// Has returns what is other than that there is one network of that name, private and
// with that subnet, and in it one endpoint, with that address and that rule alone. None
// is none.
func (h *HostNetworks) Has(name, subnet, address, rule string) []string {
	if h.Failed != "" {
		return []string{"it failed: " + cut(h.Failed)}
	}
	if n := h.named(name); n != 1 || len(h.Own) != 1 {
		return []string{fmt.Sprintf("%d networks are named %s, of %v", n, name, h.Networks)}
	}
	var problems []string
	if own := h.Own[0]; own.Type != "Private" || !slices.Equal(own.Subnets, []string{subnet}) {
		problems = append(problems, fmt.Sprintf("network %s is of type %s and has the subnets %v, and not Private and %s", name, own.Type, own.Subnets, subnet))
	}
	if len(h.Endpoints) != 1 {
		return append(problems, fmt.Sprintf("network %s has %d endpoints, and not one", name, len(h.Endpoints)))
	}
	e := h.Endpoints[0]
	if e.Address != address {
		problems = append(problems, fmt.Sprintf("the endpoint has the address %q, and not %s", e.Address, address))
	}
	if !slices.Equal(e.Rules, []string{rule}) {
		problems = append(problems, fmt.Sprintf("the endpoint has the rules %q, and not %q", e.Rules, rule))
	}
	return problems
}

// Gone returns what is left of the network of that name. None is none.
func (h *HostNetworks) Gone(name string) []string {
	if h.Failed != "" {
		return []string{"it failed: " + cut(h.Failed)}
	}
	if n := max(h.named(name), len(h.Own)); n > 0 {
		return []string{fmt.Sprintf("%d networks named %s are still there, of %v", n, name, h.Networks)}
	}
	return nil
}

// Swept returns the networks whose names begin so: what a test that was killed has left,
// and could not be removed. None is none.
func (h *HostNetworks) Swept(prefix string) []string {
	if h.Failed != "" {
		return []string{"it failed: " + cut(h.Failed)}
	}
	var problems []string
	for _, n := range h.Networks {
		if strings.HasPrefix(n.Name, prefix) {
			problems = append(problems, fmt.Sprintf("network %s is left of another run", n))
		}
	}
	return problems
}

// Others returns what is other than that all networks but that of the name are the same
// as before. None is none.
func (h *HostNetworks) Others(before *HostNetworks, name string) []string {
	var problems []string
	for _, n := range before.Networks {
		if n.Name != name && !slices.Contains(h.Networks, n) {
			problems = append(problems, fmt.Sprintf("network %s was there before, and is gone", n))
		}
	}
	for _, n := range h.Networks {
		if n.Name != name && !slices.Contains(before.Networks, n) {
			problems = append(problems, fmt.Sprintf("network %s was not there before", n))
		}
	}
	return problems
}

// Refused returns what an ordinary container could see of the networks of its node. None
// is none.
func (h *HostNetworks) Refused() []string {
	if h.Failed == "" {
		return []string{fmt.Sprintf("an ordinary container sees the networks %v", h.Networks)}
	}
	return nil
}
