package judge

import (
	"slices"
	"testing"
)

func TestReadRules(t *testing.T) {
	rules, err := ReadRules(`op-readiness: {"rules":["hpc-12","hpc-12","worker-3"]}`)
	if err != nil || !slices.Equal(rules, []string{"hpc-12", "hpc-12", "worker-3"}) {
		t.Errorf("%q, %v", rules, err)
	}
	for _, log := range []string{"", "op-readiness: []", `op-readiness: {"rules": 2}`, "New-NetFirewallRule : Access is denied."} {
		if rules, err := ReadRules(log); err == nil {
			t.Errorf("%q was read: %q", log, rules)
		}
	}
}

func TestLeftBehind(t *testing.T) {
	live := map[string]bool{"hpc-12": true, "kube-system": true}
	names := []string{"worker-3", "hpc-12", "run-as-7", "worker-3", "", ".", "..", "lost+found", "Backup", "hpc-1; rm -rf /", "-3", "hpc"}
	if got, want := LeftBehind(names, live), []string{"run-as-7", "worker-3"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
