package command

// suggestion is `, did you mean "x"?` when a candidate is near enough to be a slip of the finger,
// else empty.
func suggestion(word string, candidates []string) string {
	best, distance := "", max(2, len(word)/3)+1
	for _, c := range candidates {
		if d := editDistance(word, c); d < distance {
			best, distance = c, d
		}
	}
	if best == "" {
		return ""
	}
	return `, did you mean "` + best + `"?`
}

// editDistance counts insertions, deletions and substitutions.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d++
			}
			diagonal = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
