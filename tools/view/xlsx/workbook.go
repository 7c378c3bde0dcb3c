package xlsx

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchunit"

	"kvbench/kvbench/report"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view"
)

// Write writes the workbook of the records. t is their comparison. The charts are the last sheets,
// because they load slowest.
func Write(w io.Writer, records []*load.Record, t *stats.Table, engines []load.Engine) error {
	b := newBook()
	defer b.f.Close()
	heads, rows := Summary(records)
	b.table(table{name: "Summary", heads: heads, rows: rows, wide: true, names: 1})
	b.table(parameters(records, t))
	b.table(metrics(t))
	b.sections(records, view.Engines(engines, t))
	b.charts(view.New(records, t, nil).Charts())
	if b.err != nil {
		return b.err
	}
	// The library creates this sheet.
	if err := b.f.DeleteSheet("Sheet1"); err != nil {
		return err
	}
	b.f.SetActiveSheet(0)
	return b.f.Write(w)
}

// Summary returns the table with one row per result. A cell is a number, a string, a bool, a time, or
// nil if the value is unknown.
func Summary(records []*load.Record) (heads []string, rows [][]any) {
	rows = make([][]any, len(records))
	for _, c := range summaryColumns() {
		heads = append(heads, c.title)
		for i, rec := range records {
			rows[i] = append(rows[i], c.value(rec))
		}
	}
	return heads, rows
}

// parameters returns a table with one column per run, of the parameters and the facts of the page. If a
// value differs between trials of a run, the cell lists all values.
func parameters(records []*load.Record, t *stats.Table) table {
	sheet := table{name: "Run Parameters", heads: append([]string{"Parameter"}, t.Labels...)}
	row := map[string]int{}
	for run, facts := range view.Parameters(records, t) {
		for _, f := range facts {
			at, known := row[f.Key]
			if !known {
				at = len(sheet.rows)
				row[f.Key] = at
				sheet.rows = append(sheet.rows, make([]any, len(sheet.heads)))
				sheet.rows[at][0] = f.Key
			}
			sheet.rows[at][1+run] = Typed(strings.Join(f.Values, "; "))
		}
	}
	return sheet
}

// metrics returns a table with one row per metric. Each run has columns for the median, the interval and
// the spread, and for the change against the first run.
func metrics(t *stats.Table) table {
	sheet := table{name: "Performance Metrics",
		heads: []string{"Benchmark", "Metric", "Unit", "Better"}, names: 1}
	for i, run := range t.Labels {
		sheet.heads = append(sheet.heads, run+": Trials", run+": Median", run+": 95 % Interval Low",
			run+": 95 % Interval High", run+": Spread (CV)")
		if i > 0 {
			sheet.heads = append(sheet.heads, run+": Change of Median", run+": p",
				run+": Significant")
		}
	}
	better := map[int]any{1: "higher", -1: "lower"} // empty where unknown
	for _, bench := range t.Benchmarks {
		for _, m := range bench.Metrics {
			tidied, _ := benchunit.Tidy(1, m.Label) // the sheet has the units of the benchmark line
			row := []any{bench.Name, stats.Title(m.Unit), m.Label, better[m.Better]}
			for i, c := range m.Cells {
				values := make([]any, 5)
				if c.N() > 0 {
					values = []any{c.N(), round(c.Summary.Center / tidied),
						round(c.Summary.Lo / tidied), round(c.Summary.Hi / tidied), share(c.CV)}
				}
				row = append(row, values...)
				if i > 0 {
					row = append(row, change(c.Change)...)
				}
			}
			sheet.rows = append(sheet.rows, row)
		}
	}
	return sheet
}

// round drops digits that scaling adds: it keeps 13.
func round(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 13, 64), 64) // its text always parses
	return r
}

// change returns the three cells of the change against the first run.
func change(c *stats.Change) []any {
	if c == nil {
		return []any{nil, nil, nil}
	}
	judged := cmp.Or(c.Unjudged, "no")
	switch {
	case c.Judged(stats.Alpha) != 0:
		judged = "yes"
	case !c.Headline:
		judged = "not judged"
	}
	return []any{share(c.Ratio), c.Adjusted, judged}
}

// sections writes the sheet Facts, with the lines of all sections, a sheet per section with a table, and the
// sheet Trace Histograms with the raw buckets of the kernel's histograms.
// Results with the same section share its sheet. Three columns before its own name the result. The
// section more is of no result.
func (b *book) sections(records []*load.Record, more report.Section) {
	all := make([][]report.Section, len(records))
	named := make([][]any, len(records))
	for i, rec := range records {
		all[i] = append(view.Sections(rec), view.Timeline(rec))
		named[i] = []any{rec.Source, stats.NameOf(rec), rec.Lookup("trial")}
	}
	if len(more.Rows) > 0 {
		all, named = append(all, []report.Section{more}), append(named, make([]any, 3))
	}
	heads := []string{"Run", "Benchmark", "Trial"}
	raw := table{name: "Trace Histograms", names: 3,
		heads: append(slices.Clone(heads), "Histogram", "Unit", "Low", "High", "Count")}
	for i, rec := range records {
		for _, h := range rec.Tracing() {
			for _, bucket := range h.Buckets {
				raw.rows = append(raw.rows, append(slices.Clone(named[i]), h.Title, h.Units, bucket.Range[0],
					bucket.Range[1], bucket.Count))
			}
		}
	}
	facts := table{name: "Facts", names: 3, heads: append(heads, "Section", "Topic", "Fact")}
	sheets := []table{}
	for _, j := range report.Join(all) {
		for i, l := range j.Lines {
			facts.rows = append(facts.rows, append(slices.Clone(named[j.LineOf[i]]), j.Title,
				l.Topic, l.Text))
		}
		t := table{name: j.Title, names: 3, heads: slices.Clone(heads)}
		for _, c := range j.Columns {
			t.heads = append(t.heads, c.Name+sheetUnits[c.Unit])
		}
		for i, row := range j.Rows {
			t.rows = append(t.rows,
				append(slices.Clone(named[j.RowOf[i]]), numbers(j.Columns, row)...))
		}
		sheets = append(sheets, t)
	}
	for _, t := range append([]table{facts}, append(sheets, raw)...) {
		b.table(t)
	}
}

// sheetUnits are the units in the heads. numbers converts values to these units.
var sheetUnits = map[units.Unit]string{units.Nanoseconds: " (ms)", units.Milliseconds: " (ms)",
	units.Seconds: " (s)", units.Bytes: " (GiB)", units.BytesPerSec: " (GiB/s)"}

// numbers converts a row's values to sheetUnits. An unknown value is nil. Booleans and strings stay.
func numbers(columns []report.Column, row []any) (cells []any) {
	for i, v := range row {
		x, text, ok := units.Float(v)
		switch u := columns[i].Unit; {
		case !ok && (text == units.Unknown || v == ""):
			v = nil
		case !ok:
		case u == units.Share:
			v = share(x)
		case u == units.Bytes, u == units.BytesPerSec:
			v = x / (1 << 30)
		case u == units.Nanoseconds:
			v = x / 1e6
		default:
			v = x
		}
		cells = append(cells, v)
	}
	return cells
}
