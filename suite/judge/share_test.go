package judge

import (
	"strings"
	"testing"
)

const goodShare = `op-readiness: {"saw": {"b": 3, "c": 1}, "lines": {"a": 2, "b": 2, "c": 2}, "all": 6}`

func TestShared(t *testing.T) {
	writers := []string{"a", "b", "c"}
	others := []string{
		`op-readiness: {"saw": {"c": 1, "a": 2}, "lines": {"a": 2, "b": 2, "c": 2}, "all": 6}`,
		`op-readiness: {"saw": {"a": 1, "b": 2}, "lines": {"a": 2, "b": 2, "c": 2}, "all": 6}`,
	}
	for what, c := range map[string]struct{ log, want string }{
		"all is there":         {goodShare, ""},
		"with Windows' ends":   {"hello\r\n" + goodShare + "\r\n", ""},
		"saw nothing of one":   {strings.Replace(goodShare, `"b": 3`, `"b": 0`, 1), "a had seen no line of b when it wrote its last one"},
		"one lacks lines":      {strings.Replace(goodShare, `"c": 2`, `"c": 1`, 1), "a reads 1 whole lines of c, which wrote 2"},
		"a line is torn":       {strings.Replace(goodShare, `"all": 6`, `"all": 7`, 1), "a reads 7 lines, and 6 were written"},
		"no answer":            {"sh: read-only file system", `a: it gives no answer, but says "sh: read-only file system"`},
		"two answers":          {goodShare + "\n" + goodShare, "a: it answers twice"},
		"an answer cut off":    {goodShare[:40], "a: its answer "},
		"an answer of another": {`op-readiness: {"rules": 1}`, "a: its answer "},
	} {
		got := strings.Join(Shared(writers, 2, append([]string{c.log}, others...)), "; ")
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

func TestSharedLater(t *testing.T) {
	writers := []string{"a", "b"}
	for log, want := range map[string]string{
		`op-readiness: {"lines": {"a": 2, "b": 2}, "all": 4}`: "",
		`op-readiness: {"lines": {"a": 2, "b": 0}, "all": 2}`: "whoever came later reads 0 whole lines of b, which wrote 2; whoever came later reads 2 lines, and 4 were written",
		"": `whoever came later: it gives no answer, but says ""`,
	} {
		if got := strings.Join(SharedLater(writers, 2, log), "; "); got != want {
			t.Errorf("%q: %q, want %q", log, got, want)
		}
	}
}

func FuzzShared(f *testing.F) {
	for _, log := range []string{goodShare, "", "op-readiness: null", "op-readiness: {}", answerPrefix + answerPrefix, "op-readiness: {\"all\": 1e9}"} {
		f.Add(log)
	}
	f.Fuzz(func(t *testing.T, log string) {
		if problems := Shared([]string{"a"}, 2, []string{log}); len(problems) == 0 && !strings.Contains(log, answerPrefix) {
			t.Errorf("%q is taken for an answer", log)
		}
	})
}
