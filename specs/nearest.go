package specs

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Nearest returns which of allowed is most like name, for an error that wants
// to suggest what was meant; "" where nothing is alike.
func Nearest(name string, allowed []string) string {
	best, bestDistance := "", 1+max(1, len(name)/2)
	for _, candidate := range allowed {
		low, lowCandidate := strings.ToLower(name), strings.ToLower(candidate)
		d := editDistance(low, lowCandidate)
		if len(name) > 2 && strings.Contains(lowCandidate, low) {
			d = min(d, 1)
		}
		if d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// didYouMean is the end of an error about an unknown name.
func didYouMean(name string, allowed []string) string {
	text := ": use " + oneOf(allowed)
	if near := Nearest(name, allowed); near != "" {
		text += "; did you mean " + near + "?"
	}
	return text
}

// oneOf lists names as "a, b or c".
func oneOf(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// editDistance counts the letters to insert, delete, replace or swap with
// their neighbour to make b of a.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	var before, above []int
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(x); i++ {
		before, above = above, row
		row = make([]int, len(y)+1)
		row[0] = i
		for j := 1; j <= len(y); j++ {
			replace := above[j-1]
			if x[i-1] != y[j-1] {
				replace++
			}
			row[j] = min(above[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(y)]
}

func compareText(a, b string) int { return cmp.Compare(a, b) }

// index finds texts that share words, the rarer the more telling: the cosine
// between texts as vectors of words.
type index struct {
	texts []string
	words []map[string]bool
	// weight is large for words that few texts have.
	weight map[string]float64
}

func newIndex(texts []string) *index {
	ix := &index{texts: texts, words: make([]map[string]bool, len(texts)), weight: map[string]float64{}}
	for i, t := range texts {
		ix.words[i] = stems(t)
		for w := range ix.words[i] {
			ix.weight[w]++
		}
	}
	for w, n := range ix.weight {
		ix.weight[w] = math.Log(1 + float64(len(texts))/n)
	}
	return ix
}

// nearest returns up to n texts that share most with query, best first.
func (ix *index) nearest(query string, n int) []string {
	type hit struct {
		text  string
		score float64
	}
	wanted := stems(query)
	var hits []hit
	for i, words := range ix.words {
		shared, length := 0.0, 0.0
		for w := range words {
			square := ix.weight[w] * ix.weight[w]
			length += square
			if wanted[w] {
				shared += square
			}
		}
		if shared > 0 {
			hits = append(hits, hit{ix.texts[i], shared / math.Sqrt(length)})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.text, b.text))
	})
	var texts []string
	for _, h := range hits[:min(n, len(hits))] {
		texts = append(texts, h.text)
	}
	return texts
}

// stems are the words of a text, lower case, without tags and endings.
func stems(text string) map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) {
		if len(w) > 6 {
			w = w[:6]
		}
		if len(w) > 1 {
			words[w] = true
		}
	}
	return words
}

// similarity says how much two texts have in common, from 0 to 1: twice the
// shared words over all words.
func similarity(a, b string) float64 {
	x, y := stems(a), stems(b)
	if len(x)+len(y) == 0 {
		return 0
	}
	shared := 0
	for w := range x {
		if y[w] {
			shared++
		}
	}
	return 2 * float64(shared) / float64(len(x)+len(y))
}
