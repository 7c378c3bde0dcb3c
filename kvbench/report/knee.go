package report

import (
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// knee lists the cells of the grid in which the knee was found, for the page. The text has
// kneeGrid, and the workbook no sheet of it.
func knee(r *result.Result) (t Table) {
	if r.PlainIO == nil || r.PlainIO.Knee == nil {
		return t
	}
	k := r.PlainIO.Knee
	t = Table{Title: "The knee", Sheet: "Knee",
		Note: "Requests of each size at random places, so many in flight. Rates are medians of " +
			"three short measurements. The knee is the cell with the fewest bytes in flight " +
			"within 5 % of what the best cell reached in each of its measurements.",
		Columns: []Column{{Page: "size", Unit: units.Bytes}, {Page: "in flight", Unit: units.Count},
			{Page: "bytes in flight", Unit: units.Bytes}, {Page: "rate", Unit: units.BytesPerSec},
			{Page: "lowest", Unit: units.BytesPerSec}, {Page: "highest", Unit: units.BytesPerSec},
			{Page: "p99", Unit: units.Milliseconds}, {Page: "measured", Unit: units.Count},
			{Page: "knee"}}}
	t.Words = sentences(kneeLines(r))
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
		t.add(p.RequestBytes, int64(p.InFlight), p.Bytes(), p.Rate, p.Min, p.Max,
			ms(p.P99NS), int64(p.Rounds), mark)
	}
	return t
}

// kneeGrid is the same for the text: a row for each number in flight, a column for each request
// size. Each cell has the median and, in brackets, the lowest and the highest measurement, all in
// one unit; an asterisk marks the knee, and an equals sign the cells that equal it within the
// spread.
func kneeGrid(r *result.Result) (t Table) {
	if r.PlainIO == nil || r.PlainIO.Knee == nil {
		return t
	}
	k := r.PlainIO.Knee
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
	t = Table{Topic: "grid", Columns: []Column{{Text: "in flight, " + unit}}}
	for _, size := range sizes {
		t.Columns = append(t.Columns, Column{Text: units.Bytes.Text(size)})
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
		t.add(row...)
	}
	return t
}
