package report

import (
	"fmt"
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
		Columns: []Column{{"size", units.Bytes}, {"in flight", units.Count},
			{"bytes in flight", units.Bytes}, {"rate", units.BytesPerSec},
			{"lowest", units.BytesPerSec}, {"highest", units.BytesPerSec},
			{"p99", units.Nanoseconds}, {"measured", units.Count}, {"knee", units.Number}}}
	equal := k.Equal()
	for _, p := range k.Points {
		// In words, because a page is read aloud.
		mark := ""
		switch {
		case k.Is(p) && k.Known():
			mark = "knee"
		case k.Is(p):
			mark = "best so far"
		case slices.Contains(equal, p):
			mark = "equal within the spread"
		}
		s.add(p.RequestBytes, int64(p.InFlight), p.Bytes(), p.Rate, p.Min, p.Max, p.P99NS,
			int64(p.Rounds), mark)
	}
	s.meaning(r, k)
	return s
}

// kneeGrid returns the grid for the text, with a row per number in flight and a column per request size.
// A cell has the median and, in brackets, the lowest and the highest measurement, all in one unit. An
// asterisk marks the knee. An equals sign marks the cells that equal the knee within the spread.
func kneeGrid(k *result.Knee) *Section {
	var sizes []int64
	var depths []int
	var rates []any
	for _, p := range k.Points {
		sizes, depths = append(sizes, p.RequestBytes), append(depths, p.InFlight)
		rates = append(rates, p.Min, p.Rate, p.Max)
	}
	slices.Sort(sizes)
	slices.Sort(depths)
	sizes, depths = slices.Compact(sizes), slices.Compact(depths)
	text := units.BytesPerSec.InOneUnit(rates...)
	_, unit, _ := strings.Cut(text(k.Best), " ")
	s := &Section{Topic: "grid", Columns: columns("in flight, " + unit)}
	for _, size := range sizes {
		s.Columns = append(s.Columns, Column{units.Bytes.Text(size), units.Number})
	}
	number := func(v float64) string {
		text, _, _ := strings.Cut(text(v), " ")
		return text
	}
	equal := k.Equal()
	for _, depth := range depths {
		row := []any{fmt.Sprint(depth)}
		for _, size := range sizes {
			cell := units.Unknown
			for _, p := range k.Points {
				if p.RequestBytes != size || p.InFlight != depth {
					continue
				}
				cell = fmt.Sprintf("%s (%s–%s)", number(p.Rate), number(p.Min), number(p.Max))
				switch {
				case k.Is(p):
					cell = "* " + cell
				case slices.Contains(equal, p):
					cell = "= " + cell
				}
			}
			row = append(row, cell)
		}
		s.add(row...)
	}
	return s
}
