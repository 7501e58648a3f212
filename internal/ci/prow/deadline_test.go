//go:build unix

package prow

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const threeHours = `{"decoration_config":{"timeout":"3h","grace_period":"15m"}}`

// play are the parts that this test binary plays as a process of its own: Prow's
// entrypoint, which runs a script, and the program that the script calls.
const play = "OP_READINESS_TEST_PLAY"

func TestMain(m *testing.M) {
	switch os.Getenv(play) {
	case "entrypoint":
		cmd := exec.Command("sh", "-c", `"$0"; exit $?`, os.Args[1])
		cmd.Env = append(os.Environ(), play+"=tool")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	case "tool":
		job, err := FromEnvironment(func(string) string { return threeHours })
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		// As if the script had taken an hour before.
		fmt.Println(job.Deadline(time.Now().Add(time.Hour), 20*time.Minute).UnixMilli())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// What a script did before it called this program has used time of the job.
func TestTheTimeoutCountsFromEntrypoint(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, counted := range map[string]bool{"/tools/entrypoint": true, "/bin/runner.sh": false} {
		before := time.Now().Add(-time.Second) // processes begin at a clock tick
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Args = []string{name, self}
		cmd.Env = append(os.Environ(), play+"=entrypoint")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		after := time.Now().Add(time.Second)
		var ms int64
		if _, err := fmt.Sscan(strings.TrimSpace(string(out)), &ms); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		wait := 3*time.Hour - 20*time.Minute
		if !counted {
			wait += time.Hour
		}
		if at := time.UnixMilli(ms); at.Before(before.Add(wait)) || at.After(after.Add(wait)) {
			t.Errorf("below %s the run ends %v after the start, want %v", name, at.Sub(before).Round(time.Second), wait)
		}
	}
}

func TestAReserveIsSomebodyElses(t *testing.T) {
	job, err := FromEnvironment(func(string) string { return threeHours })
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	if got := job.Deadline(now, 20*time.Minute).Sub(now); got != 2*time.Hour+40*time.Minute {
		t.Errorf("it ends after %v", got)
	}
	if got := job.TimeToStop(20 * time.Minute); got != 5*time.Minute {
		t.Errorf("stopping may take %v", got)
	}
	if got := job.TimeToStop(3 * time.Hour); got != 14*time.Minute+30*time.Second {
		t.Errorf("stopping may take %v, more than the grace period", got)
	}
	var none *Job
	if !none.Deadline(now, time.Minute).IsZero() || none.TimeToStop(time.Minute) != 0 {
		t.Error("outside of Prow there is an end")
	}
}
