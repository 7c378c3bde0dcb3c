package history

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"kvbench/kvbench/report"
	"kvbench/kvbench/units"
	"kvbench/tools/stats"
	"kvbench/tools/view"
)

// short is a commit as people write it: so many letters of git's hash. Names that are none stay
// whole.
func short(commit string, letters int) string {
	if hash := len(commit) == 40 || len(commit) == 64; hash &&
		strings.Trim(commit, "0123456789abcdef") == "" {
		return commit[:letters]
	}
	return commit
}

// tick is a commit at an axis, where a dozen stand side by side: as short as git's own. Of other
// names the end tells them apart.
func tick(commit string) string {
	name := []rune(short(commit, 7))
	if most := 9; len(name) > most {
		return "…" + string(name[len(name)-most+1:])
	}
	return string(name)
}

// words say what a change is: at which commit, by how much, and whether for the better.
func (s *Series) words(c Change) string {
	text := fmt.Sprintf("%s: %+.1f%% (p %.2g)", short(s.Points[c.At].Commit, 12), 100*c.Ratio, c.P)
	switch sign := c.Ratio * float64(s.Better); {
	case sign > 0:
		return text + " better"
	case sign < 0:
		return text + " WORSE"
	}
	return text
}

// Text is a row for each series: the first and the last median, and the commits that changed it.
func Text(all []*Series) string {
	var out strings.Builder
	tab := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "machine\tbenchmark\tmetric\tcommits\tfirst\tlast\tchanges")
	for _, s := range all {
		fmt.Fprintln(tab, strings.Join(s.cells(all), "\t"))
	}
	tab.Flush()
	return out.String()
}

// cells are what a row says of a series.
func (s *Series) cells(all []*Series) []string {
	unit, _ := stats.Line(s.Unit)
	var changes []string
	for _, c := range s.Changes {
		changes = append(changes, s.words(c))
	}
	if len(changes) == 0 {
		changes = []string{"none found"}
	}
	first, last := s.ends()
	return []string{s.Machine, s.Name(all), unit, fmt.Sprint(len(s.Points)),
		s.format(all, first), s.format(all, last), strings.Join(changes, ", ")}
}

// ends are the first and the last median.
func (s *Series) ends() (first, last float64) {
	return s.Points[0].Median, s.Points[len(s.Points)-1].Median
}

// format is a median as the table has it: all its rates of bytes are in one unit.
func (s *Series) format(all []*Series, v float64) string {
	if !strings.HasSuffix(s.Unit, rate) {
		return stats.Format(v, s.Unit)
	}
	var rates []any
	for _, o := range all {
		if strings.HasSuffix(o.Unit, rate) {
			first, last := o.ends()
			rates = append(rates, first, last)
		}
	}
	return units.BytesPerSec.Beside(rates...)(v)
}

// rate ends the units of bytes per second: read-B/s.
const rate = "B/s"

// Page has a figure for each series: a dot for each trial, a line through the medians, and a mark
// where it changed.
func Page(all []*Series) view.Page {
	p := view.Page{Title: "History", Notes: []string{"A mark is the first commit of another " +
		"level (Pettitt's test on the medians of the commits, 5 % for all figures together); " +
		"dots are trials, commits stand in the order in which they were added."}}
	t := report.Table{Title: "Series"}
	for _, head := range []string{"Machine", "Benchmark", "Metric", "Commits", "First", "Last",
		"Changes"} {
		t.Columns = append(t.Columns, report.Column{Page: head})
	}
	for _, s := range all {
		row := make([]any, len(t.Columns))
		for i, cell := range s.cells(all) {
			row[i] = cell
		}
		t.Rows = append(t.Rows, row)
		p.Figures = append(p.Figures, s.chart(all))
	}
	p.Parts = []report.Table{t}
	return p
}

// chart draws a series.
func (s *Series) chart(all []*Series) view.Chart {
	unit, _ := stats.Line(s.Unit)
	c := view.Chart{Title: s.Name(all) + " on " + s.Machine, X: view.Axis{Label: "commit"},
		Y: view.Axis{Label: unit}}
	// Digits that an axis can hold: bytes as MiB, seconds as ms.
	scale := 1.0
	switch {
	case strings.HasSuffix(s.Unit, "B/s"):
		scale, c.Y.Label = 1.0/(1<<20), stats.Title(s.Unit)+" (MiB/s)"
	case strings.HasSuffix(s.Unit, "sec") || strings.HasSuffix(s.Unit, "sec/op"):
		scale, c.Y.Label = 1e3, stats.Title(s.Unit)+" (ms)"
	}
	medians := view.Line{Name: "median"}
	trials := view.Line{Name: "trials", Colour: 1, Dots: true, Apart: true}
	for i, p := range s.Points {
		c.X.Ticks = append(c.X.Ticks, view.Tick{At: float64(i), Label: tick(p.Commit)})
		medians.X, medians.Y = append(medians.X, float64(i)), append(medians.Y, p.Median*scale)
		// Side by side: of several at one place a script shows the last.
		for k, v := range p.Trials {
			beside := (float64(k) + 0.5) / float64(len(p.Trials))
			trials.X = append(trials.X, float64(i)+0.5*(beside-0.5))
			trials.Y = append(trials.Y, v*scale)
		}
	}
	for _, change := range s.Changes {
		c.Marks = append(c.Marks, view.Mark{X: float64(change.At), Text: fmt.Sprintf("%s %+.1f%%",
			tick(s.Points[change.At].Commit), 100*change.Ratio)})
	}
	c.Lines = []view.Line{medians, trials}
	return c
}
