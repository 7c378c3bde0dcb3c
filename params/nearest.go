package params

import "strings"

// nearest returns the candidate with the smallest edit distance to word, the first of equals, and that distance.
func nearest(word string, candidates []string) (best string, distance int) {
	distance = -1
	for _, c := range candidates {
		if d := editDistance(strings.ToLower(word), strings.ToLower(c)); distance < 0 || d < distance {
			best, distance = c, d
		}
	}
	return best, distance
}

// suggestion is `, did you mean "x"?` when a candidate is near enough to be a slip of the finger, else empty.
func suggestion(word string, candidates []string) string {
	best, d := nearest(word, candidates)
	if d < 0 || d > max(2, len(word)/3) {
		return ""
	}
	return `, did you mean "` + best + `"?`
}

// editDistance counts insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
func editDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	older, old, row := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range old {
		old[j] = j
	}
	for i := 1; i <= len(s); i++ {
		row[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old, row = old, row, older
	}
	return old[len(t)]
}
