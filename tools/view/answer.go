package view

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// The outcomes of the comparison of a headline. Only a significant difference is "faster" or "slower". Another
// outcome is why a row is not judged (stats.Change.Unjudged): an answer names the rows with too few trials,
// because readers take "no difference" for "equal".
const (
	faster    = "faster"
	slower    = "slower"
	different = "different"
	chance    = "no difference can be shown"
	absent    = "measured in only one of the two"
)

// decided are the outcomes that answer which run is faster. They and chance come from a test of the row.
var decided = []string{faster, slower, different}

// mostNamed is the number of rows that an answer names per outcome. The table has all of them.
const mostNamed = 6

// answers says how each run but the first differs from the first run, over the headlines of all benchmarks.
func answers(t *stats.Table) (out []string) {
	for run := 1; run < len(t.Runs); run++ {
		rows, all := map[string][]string{}, 0 // by outcome
		for _, h := range t.Headlines() {
			outcome := compared(h, run)
			if outcome == "" {
				continue
			}
			name := h.Row()
			if tested(outcome) {
				name += " " + ratio(h.Cells[run].Change)
			}
			rows[outcome] = append(rows[outcome], name)
			all++
		}
		out = append(out, answer(rows, all, t.Labels[run], t.Labels[0]))
	}
	return out
}

// answer says how a run differs from the first one. rows are the names of all rows by outcome.
func answer(rows map[string][]string, all int, run, first string) string {
	comparable := all - len(rows[stats.NotLimited]) - len(rows[absent])
	text := fmt.Sprintf("%s against %s: %d of %s may be compared", run, first, comparable,
		units.Plural(all, "row"))
	switch {
	case len(rows[faster])+len(rows[slower])+len(rows[different]) == 0:
		text += "; none shows which run is faster"
	case len(rows[faster]) == comparable:
		text += ", and " + run + " is faster in all of them"
	case len(rows[slower]) == comparable:
		text += ", and " + first + " is faster in all of them"
	}
	for _, outcome := range slices.Concat(decided, []string{chance}, slices.Sorted(maps.Keys(rows))) {
		list, joint := rows[outcome], ": "
		if tested(outcome) {
			joint = " at "
		}
		if len(list) > 0 {
			text += "; " + outcome + joint + some(list)
			delete(rows, outcome)
		}
	}
	return text + "."
}

// tested reports whether an outcome comes from a test of the row.
func tested(outcome string) bool { return outcome == chance || slices.Contains(decided, outcome) }

// some joins the first mostNamed names of a list.
func some(list []string) string {
	if n := len(list); n > mostNamed {
		list = append(list[:mostNamed:mostNamed], fmt.Sprintf("and %d more", n-mostNamed))
	}
	return strings.Join(list, ", ")
}

// compared compares the headline of a run with the first run's. It returns "" if neither run has values.
func compared(h stats.Headline, run int) string {
	c := h.Cells[run].Change
	switch {
	case h.Cells[0].N()+h.Cells[run].N() == 0:
		return ""
	case c == nil:
		return absent
	case c.Unjudged != "":
		return c.Unjudged
	}
	switch c.Judged(stats.Alpha) {
	case 0:
		return chance
	case h.Better:
		return faster
	case -h.Better:
		return slower
	}
	return different
}

// ratio returns the run's median ÷ the first run's median.
func ratio(c *stats.Change) string { return times(1 + c.Ratio) }

// times formats a ratio.
func times(v float64) string {
	if units.Finite(v) == nil {
		return units.Unknown
	}
	return units.Number.Text(v) + "×"
}

// Scale has the headlines of one unit. Their bars have one axis.
type Scale struct {
	Headlines []stats.Headline
	Ticks     []Tick // from 0 to the end of the axis
}

// End returns the end of the axis.
func (s Scale) End() float64 { return s.Ticks[len(s.Ticks)-1].At }

// scales returns the headlines by their units without direction: B/s for read-B/s and for write-B/s.
func scales(headlines []stats.Headline) (out []Scale) {
	var found []string
	for _, h := range headlines {
		unit := h.Unit[strings.LastIndex(h.Unit, "-")+1:]
		i := slices.Index(found, unit)
		if i < 0 {
			i = len(found)
			found, out = append(found, unit), append(out, Scale{})
		}
		out[i].Headlines = append(out[i].Headlines, h)
	}
	for i := range out {
		out[i].Ticks = ticks(out[i].Headlines, found[i])
	}
	return out
}

// ticks returns at most six round values from 0 to the first that no trial exceeds.
func ticks(headlines []stats.Headline, unit string) (list []Tick) {
	most, round := 0.0, 1.0
	for _, h := range headlines {
		for _, c := range h.Cells {
			most = max(most, slices.Max(append([]float64{0}, c.Values...)))
		}
	}
	most = cmp.Or(most, 1)
	for strings.HasSuffix(unit, "B/s") && most >= 1024*round {
		round *= 1024
	}
	step := round * math.Pow(10, math.Floor(math.Log10(most/round))-1)
	for k := 0; step*5 < most; k++ {
		step *= []float64{2, 2.5, 2}[k%3] // 1, 2, 5, 10
	}
	format := units.OfLine(unit, most)
	for at := 0.0; len(list) < 2 || list[len(list)-1].At < most; at += step {
		text, _, _ := strings.Cut(format(at), " ")
		list = append(list, Tick{at, text})
	}
	end := &list[len(list)-1] // which has the unit
	end.Label = format(end.At)
	return list
}
