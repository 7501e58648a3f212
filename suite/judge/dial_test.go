package judge

import (
	"strings"
	"testing"
)

func TestDialledReached(t *testing.T) {
	names := []string{"ten-1", "ten-2"}
	for what, c := range map[string]struct {
		said []string
		want string // of the problems, joined; "" for none
	}{
		"all":                 {[]string{`{"responses":["ten-1","ten-2"]}`}, ""},
		"all, in two answers": {[]string{`{"responses":["ten-1"]}`, `{"responses":["ten-2"]}`}, ""},
		"in capitals":         {[]string{`{"responses":[" TEN-1\n","Ten-2"]}`}, ""},
		"one is missing":      {[]string{`{"responses":["ten-1"]}`}, "1 of 2 did not answer: ten-2"},
		"nobody":              {[]string{`{}`}, "2 of 2 did not answer: ten-1, ten-2"},
		"a stranger":          {[]string{`{"responses":["ten-1","ten-2","other"]}`}, "others answered: other"},
		"a name of nothing":   {[]string{`{"responses":["ten-1","ten-2",""]}`}, "others answered: "},
		"a dial failed":       {[]string{`{"responses":["ten-1","ten-2"],"errors":["refused"]}`}, "1 connection failed, the last by: refused"},
	} {
		var d Dialled
		for _, said := range c.said {
			if err := d.Add([]byte(said)); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		if got := strings.Join(d.Reached(names), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

func TestDialledSpread(t *testing.T) {
	for what, c := range map[string]struct {
		answers map[string]int
		spread  bool
	}{
		"half each":      {map[string]int{"a": 5, "b": 5}, true},
		"more than half": {map[string]int{"a": 6, "b": 5}, false},
		"one alone":      {map[string]int{"a": 1}, false},
		"nobody":         {nil, true},
	} {
		if got := (&Dialled{Answers: c.answers}).Spread(); (got == "") != c.spread {
			t.Errorf("%s: %q", what, got)
		}
	}
}

func TestDialledAvoided(t *testing.T) {
	failed := Dialled{}
	failed.Refuse(2, "no such host")
	for what, c := range map[string]struct {
		d    Dialled
		want string
	}{
		"it fails":             {failed, ""},
		"somebody else's":      {Dialled{Answers: map[string]int{"wildcard": 1}}, ""},
		"it is reached":        {Dialled{Answers: map[string]int{"wildcard": 1, "web": 1}}, "web answered"},
		"it was never dialled": {Dialled{}, "nothing was connected to"},
	} {
		if got := strings.Join(c.d.Avoided([]string{"web"}), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
	if got := strings.Join(failed.Reached([]string{"web"}), "; "); got != "1 of 1 did not answer: web; 2 connections failed, the last by: no such host" {
		t.Errorf("%q", got)
	}
}

func FuzzDialled(f *testing.F) {
	for _, said := range []string{`{"responses":["a"],"errors":["b"]}`, `{}`, `[]`, `null`, `{"responses":[null]}`, "\x00", ""} {
		f.Add(said)
	}
	f.Fuzz(func(t *testing.T, said string) {
		var d Dialled
		if err := d.Add([]byte(said)); err != nil {
			return
		}
		if problems := d.Reached([]string{"a"}); len(problems) == 0 && (len(d.Answers) != 1 || d.Answers["a"] == 0 || d.Failed > 0) {
			t.Errorf("%q is taken for a pod that was reached: %+v", said, d)
		}
	})
}
