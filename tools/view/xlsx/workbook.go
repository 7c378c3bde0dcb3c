package xlsx

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"golang.org/x/perf/benchunit"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view"
)

// maxRows is the number of rows of a sheet without its header. Excel and LibreOffice have 2²⁰ rows.
const maxRows = 1<<20 - 1

// Write writes the workbook of the records. t is their comparison. The charts are the last sheets,
// because they load slowest.
func Write(w io.Writer, records []*load.Record, t *stats.Table) error {
	// Fail now, not after a minute of writing.
	if len(records) > maxRows {
		return fmt.Errorf("%d results are more than a sheet has rows (%d); select some",
			len(records), maxRows)
	}
	b := newBook()
	defer b.f.Close()
	b.summary(records)
	b.table(parameters(records, t))
	b.table(metrics(t))
	b.results(&table{name: "QoS Metrics",
		heads: []string{"QoS Level", "Total Requests", "Latency P95 (ms)", "Latency P99 (ms)",
			"SLA Met", "SLA Compliance", "SLA Target P95 (ms)"}}, records, qos)
	// Device Tracing has one row of percentiles per histogram. Trace Histograms has the buckets, for
	// plots in other programs.
	b.results(&table{name: "Device Tracing", heads: []string{"Metric", "Description",
		"Samples", "P50", "P95", "P99", "Min Bucket", "Max Bucket", "Unit"}}, records, traceSums)
	b.results(&table{name: "Trace Histograms", heads: []string{"Histogram",
		"Bucket Low", "Bucket High", "Count", "Unit"}}, records, traceBuckets)
	b.sections(records)
	heads, _ := timeColumns(&result.Timeline{})
	b.results(&table{name: "Timeline", heads: append([]string{"Time (s)"}, heads...)}, records,
		intervals)
	b.charts(records, t)
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

// summary is the first sheet.
func (b *book) summary(records []*load.Record) {
	t := table{name: "Summary", wide: true, names: 1}
	t.heads, t.rows = Summary(records)
	b.table(t)
	b.markSimulated(t)
}

// results writes a sheet with the rows that of returns for each result. Three columns before them name
// the result.
func (b *book) results(t *table, records []*load.Record, of func(*load.Record) [][]any) {
	for _, rec := range records {
		for _, row := range of(rec) {
			t.rows = append(t.rows, append([]any{rec.Source, stats.NameOf(rec),
				rec.Lookup("trial")}, row...))
		}
	}
	t.heads = append([]string{"Run", "Benchmark", "Trial"}, t.heads...)
	t.names = 3 // so that the first column of the rows stays on screen, too
	b.table(*t)
}

// parameters returns a table with one column per run, of the parameters and the facts of the page. If a
// value differs between trials of a run, the cell lists all values.
func parameters(records []*load.Record, t *stats.Table) table {
	var order []string
	values, seen := map[[2]string]any{}, map[[3]any]bool{} // by parameter and run
	add := func(key string, rec *load.Record, v any) {
		switch v.(type) {
		case string, float64, bool:
		default:
			return
		}
		at, id := [2]string{key, rec.Source}, [3]any{key, rec.Source, v}
		if v == "" || seen[id] {
			return
		}
		seen[id] = true
		if !slices.Contains(order, key) {
			order = append(order, key)
		}
		if have := values[at]; have != nil {
			v = fmt.Sprintf("%v; %v", have, v)
		}
		values[at] = v // a single value keeps its type
	}
	for _, rec := range records {
		if rec.Result == nil {
			add("seed", rec, rec.Lookup("seed"))
		} else {
			for _, p := range rec.Result.Parameters {
				add(p.Name, rec, Typed(p.Value))
			}
		}
		for _, f := range view.Describe(rec) {
			if rec.Parameter(f.Key) != nil || f.Key == view.Given {
				continue // the parameters already have it
			}
			for _, v := range f.Values {
				add(f.Key, rec, Typed(v))
			}
		}
	}
	sheet := table{name: "Run Parameters", heads: append([]string{"Parameter"}, t.Labels...)}
	for _, key := range order {
		row := []any{key}
		for _, run := range t.Runs {
			row = append(row, values[[2]string{key, run}])
		}
		sheet.rows = append(sheet.rows, row)
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
			// Five columns for a run, and three more for its change.
			for i, c := range m.Cells {
				if c.N() == 0 {
					row = append(row, nil, nil, nil, nil, nil)
				} else {
					row = append(row, c.N(), round(c.Summary.Center/tidied),
						round(c.Summary.Lo/tidied), round(c.Summary.Hi/tidied), share(c.CV))
				}
				if i > 0 {
					row = append(row, change(c.Change, view.Comparable(bench, i))...)
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
func change(c *stats.Change, comparable bool) []any {
	if c == nil {
		return []any{nil, nil, nil}
	}
	verdict := "no"
	switch {
	case c.Headline && !comparable:
		verdict = "mostly not " + result.StorageLimited
	case c.Judged(stats.Alpha) != 0:
		verdict = "yes"
	case c.TooFew != "":
		verdict = c.TooFew
	case !c.Headline:
		verdict = "not judged"
	}
	return []any{share(c.Ratio), c.Adjusted, verdict}
}

const notJudged = "N/A (throughput mode)"

// qos returns one row per class in which requests completed.
func qos(rec *load.Record) (rows [][]any) {
	if rec.Result != nil && !view.Requests(rec.Result) {
		return nil // single operations have no class
	}
	levels, _ := rec.Lookup("summary.qos_metrics").(map[string]any)
	for _, level := range slices.Sorted(maps.Keys(levels)) {
		row := []any{level}
		ours := "latency.request.end_to_end_by_class." + level + "."
		for _, from := range []string{"total_requests", "latency_ms.p95 ? " + ours + "p95",
			"latency_ms.p99 ? " + ours + "p99", "sla.met", "sla.compliance", "sla.target_p95_ms"} {
			row = append(row, key("summary.qos_metrics."+level+"."+from)(rec))
		}
		if row[1] == nil {
			continue
		}
		// The Python benchmark's text: the throughput profile has no targets.
		if rec.Parameter("performance-profile") == "throughput" {
			row[4], row[5] = notJudged, notJudged
		}
		rows = append(rows, row)
	}
	return rows
}

// traceSums returns the percentiles and ranges of the kernel's histograms. Histograms that the Python
// benchmark also has get its names, so that formulas that look up names work.
func traceSums(rec *load.Record) (rows [][]any) {
	for _, h := range rec.Tracing() {
		rows = append(rows, []any{cmp.Or(h.Python, h.Title), h.What, float64(h.Count), *h.P50, *h.P95, *h.P99,
			h.Buckets[0].Range[0], h.Buckets[len(h.Buckets)-1].Range[1], h.Units})
	}
	return rows
}

// traceBuckets returns the buckets of the kernel's histograms.
func traceBuckets(rec *load.Record) (rows [][]any) {
	for _, h := range rec.Tracing() {
		for _, k := range h.Buckets {
			rows = append(rows,
				[]any{cmp.Or(h.Python, h.Title), k.Range[0], k.Range[1], float64(k.Count), h.Units})
		}
	}
	return rows
}
