package judge

import (
	"slices"
	"strings"
	"testing"
)

const ownNetwork = `op-readiness: {"failed": "", "networks": [{"id": "1", "name": "cni"}, {"id": "2", "name": "op-readiness-1"}],
"own": [{"type": "Private", "subnets": ["192.0.2.0/28"]}], "endpoints": [{"address": "192.0.2.5", "rules": ["Block In 6 445"]}]}`

func readNetworks(t *testing.T, log string) *HostNetworks {
	t.Helper()
	h, err := ReadHostNetworks(strings.ReplaceAll(log, "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHostNetworksHas(t *testing.T) {
	for change, want := range map[[2]string]string{
		{"", ""}:                               "",
		{`"failed": ""`, `"failed": "denied"`}: "it failed: denied",
		{`"name": "op-readiness-1"`, `"name": "op-readiness-2"`}:                   "0 networks are named op-readiness-1, of [cni (1) op-readiness-2 (2)]",
		{`"name": "cni"`, `"name": "op-readiness-1"`}:                              "2 networks are named op-readiness-1, of [op-readiness-1 (1) op-readiness-1 (2)]",
		{`"own": [{"type": "Private", "subnets": ["192.0.2.0/28"]}]`, `"own": []`}: "1 networks are named op-readiness-1, of [cni (1) op-readiness-1 (2)]",
		{"Private", "NAT"}:       "network op-readiness-1 is of type NAT and has the subnets [192.0.2.0/28], and not Private and 192.0.2.0/28",
		{"192.0.2.0/28", ""}:     "network op-readiness-1 is of type Private and has the subnets [], and not Private and 192.0.2.0/28",
		{"192.0.2.5", ""}:        `the endpoint has the address "", and not 192.0.2.5`,
		{"445", "139"}:           `the endpoint has the rules ["Block In 6 139"], and not "Block In 6 445"`,
		{`"Block In 6 445"`, ""}: `the endpoint has the rules [], and not "Block In 6 445"`,
		{`"rules": ["Block`, `"rules": ["Allow Out 17 ", "Block`}:     `the endpoint has the rules ["Allow Out 17 " "Block In 6 445"], and not "Block In 6 445"`,
		{`{"address": "192.0.2.5", "rules": ["Block In 6 445"]}`, ``}: "network op-readiness-1 has 0 endpoints, and not one",
	} {
		problems := readNetworks(t, strings.Replace(ownNetwork, change[0], change[1], 1)).Has("op-readiness-1", "192.0.2.0/28", "192.0.2.5", "Block In 6 445")
		if got := strings.Join(problems, "; "); got != want {
			t.Errorf("%q instead of %q: %q, want %q", change[1], change[0], got, want)
		}
	}
}

func TestHostNetworksGone(t *testing.T) {
	with := readNetworks(t, ownNetwork)
	without := readNetworks(t, `op-readiness: {"networks": [{"id": "1", "name": "cni"}]}`)
	if problems := with.Gone("op-readiness-1"); !slices.Equal(problems, []string{"1 networks named op-readiness-1 are still there, of [cni (1) op-readiness-1 (2)]"}) {
		t.Errorf("%q", problems)
	}
	if problems := without.Gone("op-readiness-1"); len(problems) > 0 {
		t.Errorf("%q", problems)
	}
	if problems := readNetworks(t, `op-readiness: {"failed": "denied"}`).Gone("op-readiness-1"); !slices.Equal(problems, []string{"it failed: denied"}) {
		t.Errorf("%q", problems)
	}
}

func TestHostNetworksSwept(t *testing.T) {
	if problems := readNetworks(t, ownNetwork).Swept("op-readiness-"); !slices.Equal(problems, []string{"network op-readiness-1 (2) is left of another run"}) {
		t.Errorf("%q", problems)
	}
	if problems := readNetworks(t, ownNetwork).Swept("op-readiness-2"); len(problems) > 0 {
		t.Errorf("%q", problems)
	}
	if problems := readNetworks(t, `op-readiness: {"failed": "denied"}`).Swept("op-readiness-"); !slices.Equal(problems, []string{"it failed: denied"}) {
		t.Errorf("%q", problems)
	}
}

func TestHostNetworksOthers(t *testing.T) {
	with := readNetworks(t, ownNetwork)
	for log, want := range map[string]string{
		`{"networks": [{"id": "1", "name": "cni"}]}`:                                        "",
		`{"networks": []}`:                                                                  "network cni (1) was there before, and is gone",
		`{"networks": [{"id": "3", "name": "cni"}]}`:                                        "network cni (1) was there before, and is gone; network cni (3) was not there before",
		`{"networks": [{"id": "1", "name": "cni"}, {"id": "4", "name": "nat"}]}`:            "network nat (4) was not there before",
		`{"networks": [{"id": "1", "name": "cni"}, {"id": "5", "name": "op-readiness-1"}]}`: "",
	} {
		problems := readNetworks(t, answerPrefix+log).Others(with, "op-readiness-1")
		if got := strings.Join(problems, "; "); got != want {
			t.Errorf("%s: %q, want %q", log, got, want)
		}
	}
}

func TestHostNetworksRefused(t *testing.T) {
	if problems := readNetworks(t, ownNetwork).Refused(); !slices.Equal(problems, []string{"an ordinary container sees the networks [cni (1) op-readiness-1 (2)]"}) {
		t.Errorf("%q", problems)
	}
	if problems := readNetworks(t, `op-readiness: {"failed": "no DLL"}`).Refused(); len(problems) > 0 {
		t.Errorf("%q", problems)
	}
}

func FuzzReadHostNetworks(f *testing.F) {
	f.Add(strings.ReplaceAll(ownNetwork, "\n", ""))
	f.Add(`op-readiness: {"own": [{}], "endpoints": [{}]}`)
	f.Fuzz(func(t *testing.T, log string) {
		h, err := ReadHostNetworks(log)
		if err != nil {
			return
		}
		if len(h.Has("a", "b", "c", "d")) == 0 && (len(h.Gone("a")) == 0 || len(h.Refused()) == 0) {
			t.Errorf("%q has the network, and has it not", log)
		}
		if problems := h.Others(h, "a"); len(problems) > 0 {
			t.Errorf("%q is other than itself: %q", log, problems)
		}
	})
}
