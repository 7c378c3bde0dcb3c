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

// The outcomes of the comparison of a headline metric, in the order of an answer. Only a significant
// difference is "faster" or "slower". Another outcome is why a row is not judged (stats.Change.Unjudged):
// an answer names the rows with too few trials, because readers take "no difference" for "equal".
const (
	faster    = "faster at"
	slower    = "slower at"
	different = "different at"
	chance    = "no difference can be shown at"
	absent    = "measured in only one of the two runs"
)

// decided are the outcomes that answer which run is faster.
var decided = []string{faster, slower, different}

// mostNamed is the number of benchmarks that an answer names per outcome. The table has all of them.
const mostNamed = 6

// answers says how each run but the first differs from the first run, over the headline metrics of all
// benchmarks.
func answers(t *stats.Table) (out []string) {
	for run := 1; run < len(t.Runs); run++ {
		names, all, shown := map[string][]string{}, 0, false
		for _, b := range t.Headlines() {
			outcome, name := compared(b, run), b.Name
			if outcome == "" {
				continue
			}
			if shown = shown || slices.Contains(decided, outcome); strings.HasSuffix(outcome, " at") {
				name += " " + ratio(b.Headline().Cells[run].Change)
			}
			names[outcome] = append(names[outcome], name)
			all++
		}
		comparable := all - len(names[stats.NotLimited]) - len(names[absent])
		text := fmt.Sprintf("%s against %s: %d of %s may be compared", t.Labels[run], t.Labels[0], comparable,
			units.Plural(all, "row"))
		switch {
		case !shown:
			text += "; none shows which run is faster"
		case len(names[faster]) == comparable:
			text += ", and " + t.Labels[run] + " is faster in all of them"
		case len(names[slower]) == comparable:
			text += ", and " + t.Labels[0] + " is faster in all of them"
		}
		for _, outcome := range slices.Concat(decided, []string{chance}, slices.Sorted(maps.Keys(names))) {
			if list := names[outcome]; len(list) > 0 {
				delete(names, outcome)
				if !strings.HasSuffix(outcome, " at") {
					outcome += ":"
				}
				text += "; " + outcome + " " + some(list)
			}
		}
		out = append(out, text+".")
	}
	return out
}

// some joins the first mostNamed names of a list.
func some(list []string) string {
	if n := len(list); n > mostNamed {
		list = append(list[:mostNamed:mostNamed], fmt.Sprintf("and %d more", n-mostNamed))
	}
	return strings.Join(list, ", ")
}

// compared compares the headline metric of a run with the first run's. It returns "" if neither run has
// values.
func compared(b *stats.Benchmark, run int) string {
	m := b.Headline()
	c := m.Cells[run].Change
	switch {
	case m.Cells[0].N()+m.Cells[run].N() == 0:
		return ""
	case c == nil:
		return absent
	case c.Unjudged != "":
		return c.Unjudged
	}
	switch c.Judged(stats.Alpha) {
	case 0:
		return chance
	case m.Better:
		return faster
	case -m.Better:
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
	Benchmarks []*stats.Benchmark
	Ticks      []Tick // from 0 to the end of the axis
}

// End returns the end of the axis.
func (s Scale) End() float64 { return s.Ticks[len(s.Ticks)-1].At }

// scales returns the headlines by their units without direction: B/s for read-B/s and for write-B/s.
func scales(headlines []*stats.Benchmark) (out []Scale) {
	var found []string
	for _, b := range headlines {
		name := b.Headline().Unit
		unit := name[strings.LastIndex(name, "-")+1:]
		i := slices.Index(found, unit)
		if i < 0 {
			i = len(found)
			found, out = append(found, unit), append(out, Scale{})
		}
		out[i].Benchmarks = append(out[i].Benchmarks, b)
	}
	for i := range out {
		out[i].Ticks = ticks(out[i].Benchmarks, found[i])
	}
	return out
}

// ticks returns at most six round values from 0 to the first that no trial exceeds.
func ticks(benchmarks []*stats.Benchmark, unit string) (list []Tick) {
	most, round := 0.0, 1.0
	for _, b := range benchmarks {
		for _, c := range b.Headline().Cells {
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
