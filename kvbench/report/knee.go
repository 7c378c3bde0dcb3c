package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// knee lists the cells of the grid and the knee, and gives matching settings of inference engines.
func knee(r *result.Result) (s Section) {
	if r.PlainIO == nil || r.PlainIO.Knee == nil {
		return s
	}
	k := r.PlainIO.Knee
	s = Section{Title: "Knee", Short: kneeGrid(k),
		Note: "Requests of each size at random places, so many in flight. Rates are medians of " +
			"three short measurements. The knee is the cell with the fewest bytes in flight " +
			"within 5 % of what the best cell reached in each of its measurements.",
		Columns: columns("", units.Bytes, "size", units.Count, "in flight", units.Bytes,
			"bytes in flight", units.BytesPerSec, "rate", "lowest", "highest", units.Nanoseconds,
			"p99", units.Count, "measured", units.Number, "knee")[1:]}
	words := map[string]string{"= ": "equal within the spread", "* ": "best so far"}
	if k.Known() {
		words["* "] = "knee"
	}
	for _, p := range k.Points {
		s.add(p.RequestBytes, int64(p.InFlight), p.Bytes(), p.Rate, p.Min, p.Max, p.P99NS,
			int64(p.Rounds), words[mark(k, p)]) // in words, because a page is read aloud
	}
	s.meaning(r, k)
	return s
}

// mark marks the knee by an asterisk, and by an equals sign the cells that equal it within the spread.
func mark(k *result.Knee, p result.KneePoint) string {
	switch {
	case k.Is(p):
		return "* "
	case slices.Contains(k.Equal(), p):
		return "= "
	}
	return ""
}

// kneeGrid returns the grid for the text, with a row per number in flight and a column per request size.
// A cell has the median and, in brackets, the lowest and the highest measurement, all in one unit.
func kneeGrid(k *result.Knee) *Section {
	type cell struct {
		depth int
		size  int64
	}
	var rates []any
	cells, depths, sizes := map[cell]result.KneePoint{}, map[int]bool{}, map[int64]bool{}
	for _, p := range k.Points {
		cells[cell{p.InFlight, p.RequestBytes}] = p
		depths[p.InFlight], sizes[p.RequestBytes] = true, true
		rates = append(rates, p.Min, p.Rate, p.Max)
	}
	text := units.BytesPerSec.InOneUnit(rates...)
	_, unit, _ := strings.Cut(text(k.Best), " ")
	number := func(v float64) string { return strings.TrimSuffix(text(v), " "+unit) }
	s := &Section{Topic: "grid", Columns: columns("in flight, " + unit)}
	for _, size := range slices.Sorted(maps.Keys(sizes)) {
		s.Columns = append(s.Columns, Column{Name: bytes(size)})
	}
	for _, depth := range slices.Sorted(maps.Keys(depths)) {
		row := []any{fmt.Sprint(depth)}
		for _, size := range slices.Sorted(maps.Keys(sizes)) {
			shown := units.Unknown
			if p, measured := cells[cell{depth, size}]; measured {
				shown = fmt.Sprintf("%s%s (%s–%s)", mark(k, p), number(p.Rate), number(p.Min),
					number(p.Max))
			}
			row = append(row, shown)
		}
		s.add(row...)
	}
	return s
}
