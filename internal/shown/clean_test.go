package shown

import "testing"

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"":                               "",
		"plain\ttext\r\n":                "plain\ttext\r\n",
		"\x1b[1;31mred\x1b[0m":           "red",
		"\x1b[":                          "",
		"\x1b[31":                        "",
		"\x1b]8;;http://a\x1b\\link":     "link",
		"\x1b]0;title without end\nnext": "0;title without end\nnext",
		"\x1b(Bx\x1b7y\x1b":              "xy",
		"a\x00\x01\x0bb":                 "ab",
		"a\xff\xfe\xfdb\xffc":            "a\ufffdb\ufffdc",
		"\xed\xa0\xbd\xed\xb8\x80":       "\ufffd",
		"a\ufffeb\uffffc":                "abc",
		"\ufffd stays":                   "\ufffd stays",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}
