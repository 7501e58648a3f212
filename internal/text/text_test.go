package text_test

import (
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

func TestText(t *testing.T) {
	three := []string{"a", "b", "c"}
	for got, want := range map[string]string{
		text.Count(0, "case"): "0 cases", text.Count(1, "case"): "1 case", text.Count(2, "case"): "2 cases",

		text.All(1, "node"): "the only node", text.All(2, "node"): "both nodes", text.All(3, "node"): "all 3 nodes",
		text.AllAre(1, "node"): "the only node is", text.AllAre(2, "node"): "both nodes are", text.AllAre(3, "node"): "all 3 nodes are",

		text.Few(nil, 2): "", text.Few(three, 3): "a, b, c", text.Few(three, 2): "a, b and 1 more",

		text.And(nil): "", text.And(three[:1]): "a", text.And(three[:2]): "a and b", text.And(three): "a, b and c",
		text.Or(three): "a, b or c",

		text.Head("größer", 6): "größ", text.Head("größer", 3): "gr", text.Head("größer", 0): "", text.Head("kurz", 4): "kurz",
		text.Head("\x80\x80\x80\x80\x80\x80\x80", 6): "\x80\x80",

		text.Cut("größer", 8): "größer", text.Cut("größer", 7): "größe…", text.Cut("größer", 3): "gr…",
		text.CutFront("größer", 8): "größer", text.CutFront("größer", 3): "…er", text.CutFront("größer", 0): "…",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
