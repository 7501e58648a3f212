package redact

import (
	"maps"
	"slices"
	"strings"
)

// set is a set of rules, by their index.
type set [8]uint64

// privateKey is the index that stands for what lines does with private keys.
const privateKey = 8*64 - 1

func (s *set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// keywords finds which of many words a text holds, whatever their case, in one
// pass: the automaton of Aho and Corasick. Most lines of a log hold none, and to
// try every rule takes many times as long.
type keywords struct {
	// class maps bytes to the few kinds that the words tell apart.
	class [256]uint8
	width int
	// next has a row of width states for each state. From firstFound on, a state
	// has found a word, of the rules in found.
	next       []uint16
	firstFound uint16
	found      []set
}

// newKeywords returns an automaton for lower-case words, each with its rules.
func newKeywords(words map[string]set) *keywords {
	k := &keywords{width: 1}
	for _, word := range slices.Sorted(maps.Keys(words)) {
		for _, c := range []byte(word) {
			if k.class[c] != 0 {
				continue
			}
			k.class[c] = uint8(k.width)
			if 'a' <= c && c <= 'z' {
				k.class[c-'a'+'A'] = uint8(k.width)
			}
			k.width++
		}
	}
	// A trie of the words; 0 is its root, and no edge.
	trie := [][]int{make([]int, k.width)}
	found := []set{{}}
	for word, rules := range words {
		at := 0
		for _, c := range []byte(word) {
			if trie[at][k.class[c]] == 0 {
				trie[at][k.class[c]] = len(trie)
				trie = append(trie, make([]int, k.width))
				found = append(found, set{})
			}
			at = trie[at][k.class[c]]
		}
		found[at] = rules
	}
	// Breadth first: where a state has no edge, it goes on as its longest proper
	// suffix does.
	suffix := make([]int, len(trie))
	queue := []int{0}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for c, to := range trie[at] {
			if to == 0 {
				trie[at][c] = trie[suffix[at]][c]
				continue
			}
			if at != 0 {
				suffix[to] = trie[suffix[at]][c]
			}
			for j := range found[to] {
				found[to][j] |= found[suffix[to]][j]
			}
			queue = append(queue, to)
		}
	}
	// States that found something go last.
	order := make([]int, 0, len(trie))
	for at := range trie {
		if found[at] == (set{}) {
			order = append(order, at)
		}
	}
	k.firstFound = uint16(len(order))
	for at := range trie {
		if found[at] != (set{}) {
			order = append(order, at)
			k.found = append(k.found, found[at])
		}
	}
	number := make([]uint16, len(trie))
	for n, at := range order {
		number[at] = uint16(n)
	}
	k.next = make([]uint16, 0, len(trie)*k.width)
	for _, at := range order {
		for _, to := range trie[at] {
			k.next = append(k.next, number[to])
		}
	}
	return k
}

// The letters beyond ASCII that regular expressions take for s and k where case
// does not matter.
const longS, kelvin = "\u017f", "\u212a"

// first returns the end of the first keyword in s, or -1 where there is none.
func first[text string | []byte](k *keywords, s text) int {
	state := uint16(0)
	for i := range len(s) {
		c := s[i]
		state = k.next[int(state)*k.width+int(k.class[c])]
		if state >= k.firstFound || c == longS[0] && isOdd(s[i:]) || c == kelvin[0] && isOdd(s[i:]) {
			return i + 1
		}
	}
	return -1
}

func isOdd[text string | []byte](s text) bool {
	return len(s) >= len(longS) && string(s[:len(longS)]) == longS || len(s) >= len(kelvin) && string(s[:len(kelvin)]) == kelvin
}

var foldOdd = strings.NewReplacer(longS, "s", kelvin, "k")

// all returns the rules of all keywords in a line.
func (k *keywords) all(line string) set {
	var rules set
	line = foldOdd.Replace(line)
	state := uint16(0)
	for i := range len(line) {
		state = k.next[int(state)*k.width+int(k.class[line[i]])]
		if state >= k.firstFound {
			for j, bits := range k.found[state-k.firstFound] {
				rules[j] |= bits
			}
		}
	}
	return rules
}
