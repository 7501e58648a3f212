package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/e2e"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

// said records, a line each, what an output tells.
type said struct {
	events []string
	// destroyed are namespaces, each behind the number of events before it.
	destroyed []string
}

func (s *said) SuiteRun(id string)  { s.events = append(s.events, "run "+id) }
func (s *said) Started(name string) { s.events = append(s.events, "start "+name) }
func (s *said) Finished(f e2e.Finished) {
	event := fmt.Sprintf("%s %s %.3f", f.State, f.Name, f.Seconds)
	if f.Message != "" {
		event += fmt.Sprintf(" %q", f.Message)
	}
	s.events = append(s.events, event)
}
func (s *said) Destroyed(namespace string, at time.Time) {
	s.destroyed = append(s.destroyed, fmt.Sprintf("%d %s %s", len(s.events), namespace, at.Format("15:04:05.000")))
}

func (s *said) SuiteFailed(node, message string) {
	s.events = append(s.events, fmt.Sprintf("suite %s %q", node, message))
}

// hear returns what the pieces of an output tell, and the test that had not
// finished at its end.
func hear(names []string, pieces ...string) ([]string, string) {
	var s said
	o := e2e.NewOutput(names, &s)
	for _, p := range pieces {
		if n, err := o.Write([]byte(p)); n != len(p) || err != nil {
			panic(fmt.Sprintf("wrote %d of %d: %v", n, len(p), err))
		}
	}
	unfinished := o.Close()
	return s.events, unfinished
}

// sample names the tests of testdata/output.txt.
var sample = []string{
	"[sig-a] does it",
	"[sig-a] does it twice [Serial]",
	"[sig-a] falls [Slow]",
	"[sig-b] panics",
	"[sig-b] takes too long",
	"[sig-b] will not",
	"[sig-b] is stopped",
}

func sampleText(t testing.TB) string {
	text, err := os.ReadFile("testdata/output.txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var sampleEvents = []string{
	"run ee6ed5a8-917a-48b2-ab58-80c2dd90bd50",
	"start [sig-a] does it twice [Serial]",
	"passed [sig-a] does it twice [Serial] 12.500",
	"start [sig-a] does it",
	"passed [sig-a] does it 0.001",
	"start [sig-a] falls [Slow]",
	`failed [sig-a] falls [Slow] 0.116 "[FAILED] the server rejected our request\n    <*errors.StatusError>: 400\n\n------------------------------\n• [0.001 seconds]\nIn [It] at: memory_limits.go:186 @ 11/21/26 06:28:39.711"`,
	"start [sig-b] panics",
	`failed [sig-b] panics 0.002 "[PANICKED] Test Panicked\nIn [It] at: map.go:1 @ 11/21/26 06:28:39.711\n\nassignment to entry in nil map\n\nFull Stack Trace\n  main.main()"`,
	"start [sig-b] takes too long",
	`failed [sig-b] takes too long 600.000 "[TIMEDOUT] A node timeout occurred\nIn [It] at: long.go:1 @ 11/21/26 06:28:39.711"`,
	"start [sig-b] will not",
	`skipped [sig-b] will not 0.026 "[SKIPPED] only on Linux\nIn [It] at: reboot_node.go:56 @ 11/21/26 06:28:39.605"`,
	"start [sig-b] is stopped",
	`error [sig-b] is stopped 3.000 "[INTERRUPTED] Interrupted by User\nIn [It] at: stop.go:1 @ 11/21/26 06:28:39.605"`,
	`suite SynchronizedAfterSuite "[FAILED] could not clean up\nIn [SynchronizedAfterSuite] at: e2e.go:77 @ 11/21/26 06:28:40.000"`,
}

func TestOutputTellsHowTestsEnd(t *testing.T) {
	events, unfinished := hear(sample, sampleText(t))
	if diff := compare(events, sampleEvents); diff != "" || unfinished != "" {
		t.Errorf("unfinished %q\n%s", unfinished, diff)
	}
}

func compare(got, want []string) string {
	if slices.Equal(got, want) {
		return ""
	}
	return fmt.Sprintf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
}

func TestOutputIsTheSameHoweverItIsCut(t *testing.T) {
	text := sampleText(t)
	check := func(how string, pieces []string) {
		t.Helper()
		events, _ := hear(sample, pieces...)
		if diff := compare(events, sampleEvents); diff != "" {
			t.Fatalf("%s: %s", how, diff)
		}
	}
	check("one byte at a time", strings.Split(string([]rune(text)), ""))
	var bytes []string
	for i := range len(text) {
		bytes = append(bytes, text[i:i+1])
	}
	check("one byte at a time", bytes)
	check("lines that end in CR LF", []string{strings.ReplaceAll(text, "\n", "\r\n")})
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		var pieces []string
		for rest := text; rest != ""; {
			n := min(len(rest), 1+random.IntN(300))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		check(fmt.Sprint("random pieces ", seed), pieces)
	}
}

// An output that stops anywhere must tell nothing that the whole one does not
// tell, and no test may be passed before ginkgo is done with it.
func TestOutputCutOffAnywhere(t *testing.T) {
	text := sampleText(t)
	for end := range len(text) {
		events, unfinished := hear(sample, text[:end])
		for i, e := range events {
			whole := sampleEvents[i]
			word, name, _ := strings.Cut(e, " ")
			if e == whole || i == len(events)-1 && (word == "failed" || word == "skipped" || word == "error" || word == "suite") && strings.HasPrefix(whole, word) {
				continue
			}
			t.Fatalf("cut off after %q: told %q (%s), where %q belongs", text[max(0, end-40):end], e, name, whole)
		}
		if last := len(events) - 1; last >= 0 {
			name, started := strings.CutPrefix(events[last], "start ")
			if started != (unfinished != "") || started && name != unfinished {
				t.Fatalf("cut off after %q: told %q, and unfinished is %q", text[max(0, end-40):end], events[last], unfinished)
			}
		}
	}
}

const line = "------------------------------\n"

func heading(name string) string { return line + name + " [sig-x]\nk8s.io/x.go:1\n" }

func TestOutputOfTestsThatSpeakLikeGinkgo(t *testing.T) {
	names := []string{"[sig-x] a", "[sig-x] b", "[sig-x] b [Slow]"}
	for what, c := range map[string]struct {
		text       string
		want       []string
		unfinished string
	}{
		"an end that is indented": {
			heading("[sig-x] a") + "  • [0.100 seconds]\n  " + line + "  [sig-x] b\n",
			[]string{"start [sig-x] a"}, "[sig-x] a",
		},
		"an end after which the test goes on": {
			heading("[sig-x] a") + "• [0.100 seconds]\nmore\n• [FAILED] [0.200 seconds]\n\n  [FAILED] no\n" + line,
			[]string{"start [sig-x] a", `failed [sig-x] a 0.200 "[FAILED] no"`}, "",
		},
		"signs alone at the beginning of a line": {
			heading("[sig-x] a") + "+\n•\nS\nP\n+ added\n• [0.100 seconds]\n" + line,
			[]string{"start [sig-x] a", "passed [sig-x] a 0.100"}, "",
		},
		"an end that is glued to other text": {
			heading("[sig-x] a") + "no newline• [0.100 seconds]\n" + heading("[sig-x] b") + "• [0.100 seconds]\n" + line,
			[]string{"start [sig-x] a", "start [sig-x] b", "passed [sig-x] b 0.100"}, "",
		},
		"the name without a delimiter": {
			"[sig-x] a [sig-x]\n• [0.100 seconds]\n" + line, nil, "",
		},
		"a name that begins with another": {
			heading("[sig-x] b [Slow]") + "• [0.100 seconds]\n" + heading("[sig-x] b") + "• [0.200 seconds]\n" + line,
			[]string{"start [sig-x] b [Slow]", "passed [sig-x] b [Slow] 0.100", "start [sig-x] b", "passed [sig-x] b 0.200"}, "",
		},
		"a name that was not asked for": {
			heading("[sig-x] bother") + "• [0.100 seconds]\n" + line, nil, "",
		},
		"a pending test": {
			line + "P [PENDING]\n[sig-x] a [sig-x]\nk8s.io/x.go:1\n" + line, nil, "",
		},
		"a second run id": {
			"I0102 e2e.go:109] Starting e2e run \"one\" on Ginkgo node 1\n  Starting e2e run \"two\"\n",
			[]string{"run one"}, "",
		},
		"a run id that is not a label": {
			"  Starting e2e run \"a), (b\"\n", nil, "",
		},
		"a suite node with a name of two words": {
			line + "[DeferCleanup (Suite)] \nk8s.io/e2e.go:69\n[DeferCleanup (Suite)] [FAILED] [30.026 seconds]\n[DeferCleanup (Suite)] \nk8s.io/e2e.go:69\n\n  [FAILED] no\n" + line,
			[]string{`suite DeferCleanup (Suite) "[FAILED] no"`}, "",
		},
		"a suite node without a message": {
			"[SynchronizedAfterSuite] [INTERRUPTED] [30.026 seconds]\n" + line,
			[]string{`suite SynchronizedAfterSuite "[INTERRUPTED]"`}, "",
		},
		"a suite node that fails": {
			line + "[SynchronizedBeforeSuite] \nk8s.io/e2e.go:69\n  waiting\n[SynchronizedBeforeSuite] [FAILED] [30.026 seconds]\n[SynchronizedBeforeSuite] \nk8s.io/e2e.go:69\n\n  [FAILED] no nodes\n" + line,
			[]string{`suite SynchronizedBeforeSuite "[FAILED] no nodes"`}, "",
		},
		"a test that prints a suite node": {
			heading("[sig-x] a") + "[BeforeSuite] [FAILED] [1.000 seconds]\n• [0.100 seconds]\n" + line,
			[]string{"start [sig-x] a", "passed [sig-x] a 0.100"}, "",
		},
		"a failure before the test itself": {
			heading("[sig-x] a") + "• [FAILED] [0.200 seconds]\n[sig-x] [BeforeEach] a [sig-x]\n  [BeforeEach] k8s.io/x.go:733\n  [It] k8s.io/x.go:750\n\n  [FAILED] Timed out\n" + line,
			[]string{"start [sig-x] a", `failed [sig-x] a 0.200 "[FAILED] Timed out"`}, "",
		},
		"a state that ginkgo may learn": {
			heading("[sig-x] a") + "• [VANISHED!] [0.100 seconds]\n\n  [VANISHED] where?\n" + line,
			[]string{"start [sig-x] a", `error [sig-x] a 0.100 "[VANISHED] where?"`}, "",
		},
	} {
		events, unfinished := hear(names, c.text)
		if diff := compare(events, c.want); diff != "" || unfinished != c.unfinished {
			t.Errorf("%s: unfinished %q, want %q\n%s", what, unfinished, c.unfinished, diff)
		}
	}
}

// Each test has one start and one end: whatever comes after them contradicts
// them, and changes nothing of what was told.
func TestOutputThatContradictsItself(t *testing.T) {
	const pass, fail = "• [0.100 seconds]\n" + line, "• [FAILED] [0.200 seconds]\n[sig-x] a [sig-x]\nk8s.io/x.go:1\n\n  [FAILED] no\n" + line
	const passed, failed = "passed [sig-x] a 0.100", `failed [sig-x] a 0.200 "[FAILED] no"`
	for what, c := range map[string]struct {
		text string
		want []string // of the test a
		then string   // the contradictions
	}{
		"a pass, and then a failure":     {pass + "  more\n" + fail, []string{passed}, "[sig-x] a: failed"},
		"a failure, and then a pass":     {fail + "  more\n" + pass, []string{failed}, "[sig-x] a: failed"},
		"two passes":                     {pass + "more\n" + pass, []string{passed}, ": passed"},
		"its heading, and then a pass":   {heading("[sig-x] a") + pass, []string{passed}, "[sig-x] a: error"},
		"all of it twice":                {pass + heading("[sig-x] a") + fail, []string{passed}, "[sig-x] a: failed"},
		"an end right after a delimiter": {pass + fail, []string{passed}, "[sig-x] a: failed"},
		"an end within a failure":        {"• [FAILED] [0.200 seconds]\n\n  [FAILED] no\n" + pass, []string{`failed [sig-x] a 0.200 "[FAILED] no\n• [0.100 seconds]"`}, "[sig-x] a: failed"},
		// Nothing of this is more than one end.
		"a pass that is printed":     {"• [0.001 seconds]\n" + fail, []string{failed}, ""},
		"a delimiter before its end": {line + fail, []string{failed}, ""},
		"a pending test":             {"P [PENDING]\n" + line + pass + line + "P [PENDING]\n[sig-x] b\nx.go:1\n" + line, []string{passed}, ""},
		"a test that another skips":  {pass + "S [SKIPPED] [0.000 seconds]\n[sig-x] b\nx.go:1\n\n  [SKIPPED] an earlier one failed\n" + line, []string{passed}, ""},
		"skipped ones between":       {pass + "S\n" + line + "SSS\n" + line, []string{passed}, ""},
	} {
		var s said
		o := e2e.NewOutput([]string{"[sig-x] a", "[sig-x] b"}, &s)
		if _, err := o.Write([]byte(heading("[sig-x] a") + c.text + heading("[sig-x] b") + "• [0.300 seconds]\n" + line)); err != nil {
			t.Fatal(err)
		}
		o.Close()
		want := slices.Concat([]string{"start [sig-x] a"}, c.want, []string{"start [sig-x] b", "passed [sig-x] b 0.300"})
		if diff := compare(s.events, want); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		var then []string
		for _, d := range o.Contradictions() {
			then = append(then, fmt.Sprintf("%s: %s", d.Test, d.State))
		}
		if got := strings.Join(then, ", "); got != c.then {
			t.Errorf("%s: contradictions %q, want %q", what, got, c.then)
		}
	}
}

func TestOutputWithLongLinesAndLongMessages(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	events, _ := hear([]string{"[sig-x] a"},
		long+"\n"+heading("[sig-x] a")+long+"• [0.001 seconds]\n• [0.100 seconds]"+long+"\n• [FAILED] [0.200 seconds]\n\n  [FAILED] no\n"+
			strings.Repeat("  more of it, again and again\n", 10000)+line)
	if len(events) != 2 || !strings.HasPrefix(events[1], `failed [sig-x] a 0.200 "[FAILED] no\nmore`) {
		t.Fatalf("told %.300q", events)
	}
	if len(events[1]) > 2*result.MaxMessage {
		t.Errorf("kept %d bytes of a message", len(events[1]))
	}
}

func FuzzOutput(f *testing.F) {
	f.Add(sampleText(f), 7)
	f.Add(heading("[sig-a] does it")+"• [0.100 seconds]\n"+line, 1)
	f.Add("\xff\r\n"+line+"P [PENDING]\n", 3)
	f.Fuzz(func(t *testing.T, text string, size int) {
		whole, unfinished := hear(sample, text)
		var pieces []string
		for rest := text; rest != ""; {
			n := min(len(rest), max(1, size))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		cut, unfinishedCut := hear(sample, pieces...)
		if diff := compare(cut, whole); diff != "" || unfinished != unfinishedCut {
			t.Errorf("in pieces of %d: %s", size, diff)
		}
		running := ""
		for _, e := range whole {
			word, rest, _ := strings.Cut(e, " ")
			switch word {
			case "start":
				running = rest
			case "passed", "failed", "skipped", "error":
				if running == "" || !strings.HasPrefix(rest, running+" ") {
					t.Errorf("%q was told while %q ran", e, running)
				}
				running = ""
			}
		}
		if running != unfinished {
			t.Errorf("unfinished is %q, and %q ran last", unfinished, running)
		}
	})
}

func TestNamespacesAreToldWhileTheirTestRuns(t *testing.T) {
	const text = "" +
		"  STEP: Destroying namespace \"nobodys\" for this suite. @ 11/21/26 06:28:39.609\n" +
		"------------------------------\n" +
		"a test [sig-x]\n" +
		"file.go:1\n" +
		"  STEP: Destroying namespace \"one-1\" for this suite. @ 11/21/26 06:28:39.609\n" +
		"  STEP: Destroying namespace \"two-2\" for this suite. @ 11/21/26 06:28:39\n" +
		"  STEP: Destroying namespace \"three-3\" for this suite. @ noon\n" +
		"  STEP: Destroying namespace \"four-4\" for this suite.\n" +
		"  I1121 STEP: Destroying namespace \"logged\" for this suite.\n" +
		"  STEP: Destroying namespace \"../evil\" for this suite. @ 11/21/26 06:28:39.609\n" +
		"• [0.026 seconds]\n" +
		"------------------------------\n"
	var s said
	o := e2e.NewOutput([]string{"a test"}, &s)
	if _, err := o.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	o.Close()
	// Behind the start, before the end.
	if want := []string{"1 one-1 06:28:39.609", "1 two-2 06:28:39.000", "1 three-3 00:00:00.000", "1 four-4 00:00:00.000"}; !slices.Equal(s.destroyed, want) {
		t.Errorf("namespaces %q, want %q", s.destroyed, want)
	}
}
