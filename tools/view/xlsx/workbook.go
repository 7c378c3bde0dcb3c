package xlsx

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view"
)

// Missing says what stays empty for want of result files. Lines of text have their own numbers,
// which fill their columns; the rest needs the file.
func Missing(records []*load.Record) []string {
	lost, first := 0, ""
	for _, r := range records {
		if r.Missing != "" {
			lost++
			first = cmp.Or(first, r.Missing)
		}
	}
	if lost == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d lines have no result file, their parameters, latencies "+
		"and QoS stay empty; the first: %s", lost, len(records), first)}
}

// maxRows is what a sheet holds, less its header. Excel and LibreOffice have 2²⁰ rows.
const maxRows = 1<<20 - 1

// Write makes the workbook of the records; t is their comparison. Sheets stand in the order in
// which people open them; the charts come last, because they are the slowest to load.
func Write(w io.Writer, records []*load.Record, t *stats.Table) error {
	// Better now than after a minute of writing.
	if len(records) > maxRows {
		return fmt.Errorf("%d results are more than a sheet has rows (%d); select some",
			len(records), maxRows)
	}
	b := newBook()
	defer b.f.Close()
	b.summary(records)
	b.parameters(records, t)
	b.metrics(t)
	b.qos(records)
	b.tracing(records)
	b.parts(records)
	b.charts(t)
	if b.err != nil {
		return b.err
	}
	// Every new workbook has one.
	if err := b.f.DeleteSheet("Sheet1"); err != nil {
		return err
	}
	b.f.SetActiveSheet(0)
	return b.f.Write(w)
}

// summary has a row for each result.
func (b *book) summary(records []*load.Record) {
	t := table{name: "Summary", frozen: 1, wide: true}
	columns := summaryColumns()
	for _, c := range columns {
		t.heads, t.widths = append(t.heads, c.title), append(t.widths, c.width)
	}
	for _, rec := range records {
		row := make([]any, len(columns))
		for i, c := range columns {
			row[i] = c.value(rec)
		}
		t.rows = append(t.rows, row)
	}
	b.table(t)
	b.markSimulated(t)
}

// parameters sets the runs side by side: a value that differs between benchmarks or trials of a run
// is listed once each.
func (b *book) parameters(records []*load.Record, t *stats.Table) {
	sheet := table{name: "Run Parameters", heads: []string{"Parameter"}, frozen: 1}
	sheet.heads = append(sheet.heads, t.Labels...)
	values := map[string]map[string][]any{} // parameter, run
	var order []string
	// A value that differs within a run is a mixture, which shows as several values in one cell.
	add := func(key, run string, v any) {
		if v == nil || v == "" {
			return
		}
		if values[key] == nil {
			values[key] = map[string][]any{}
			order = append(order, key)
		}
		if !slices.Contains(values[key][run], v) {
			values[key][run] = append(values[key][run], v)
		}
	}
	for _, rec := range records {
		if rec.Result == nil {
			add("seed", rec.Source, rec.Lookup("seed"))
			for _, c := range rec.Config {
				add(c.Key, rec.Source, typed(c.Value))
			}
			continue
		}
		for _, p := range rec.Result.Parameters {
			if v := typed(p.Value); v != nil {
				add(p.Name, rec.Source, v)
			}
		}
		for _, e := range environmentRows {
			if v := rec.Lookup(e.path); plain(v) {
				add(e.title, rec.Source, v)
			}
		}
	}
	for _, key := range order {
		row := []any{key}
		for _, run := range t.Runs {
			row = append(row, joined(values[key][run]))
		}
		sheet.rows = append(sheet.rows, row)
	}
	if len(sheet.rows) == 0 {
		sheet.rows = [][]any{{"No result file was read: parameters are known only from those."}}
	}
	b.table(sheet)
}

// environmentRows are what a result says of where it was made, by its keys.
var environmentRows = []struct{ title, path string }{
	{"Notice", "notice"}, {"Host", "environment.hostname"}, {"Operating system", "environment.os"},
	{"Kernel", "environment.kernel"},
	{"CPU", "environment.cpu_model"}, {"Cores", "environment.cores"},
	{"Memory (bytes)", "environment.memory_bytes"},
	{"Filesystem", "environment.filesystem.type"}, {"Device", "environment.device.name"},
	{"Device model", "environment.device.model"},
	{"Device size (bytes)", "environment.device.size_bytes"}, {"I/O mode granted", "io.mode"},
	{"Write device time", "io.write_device"},
	{"Chunk (bytes)", "io.chunk_bytes"}, {"Chunks in flight per operation", "io.depth"},
	{"kvbench version", "environment.kvbench_version"},
}

// plain says whether a JSON value is a plain one.
func plain(v any) bool {
	switch v.(type) {
	case string, float64, bool:
		return true
	}
	return false
}

// joined puts several values into a cell; a single one keeps its type.
func joined(values []any) any {
	switch len(values) {
	case 0:
		return nil
	case 1:
		return values[0]
	}
	text := make([]string, len(values))
	for i, v := range values {
		text[i] = fmt.Sprint(v)
	}
	return strings.Join(text, "; ")
}

// metrics has a row for each metric, with the columns of each run: numbers, an interval, and
// whether the run differs from the first.
func (b *book) metrics(t *stats.Table) {
	sheet := table{name: "Performance Metrics",
		heads: []string{"Benchmark", "Metric", "Unit", "Better"}, frozen: 2}
	for i, run := range t.Labels {
		sheet.heads = append(sheet.heads, run+": Trials", run+": Median", run+": 95 % Interval Low",
			run+": 95 % Interval High", run+": Spread (CV)")
		if i > 0 {
			sheet.heads = append(sheet.heads, run+": Change of Median", run+": p",
				run+": Significant")
		}
	}
	for _, bench := range t.Benchmarks {
		for _, m := range bench.Metrics {
			unit, scale := stats.Line(m.Unit)
			row := []any{bench.Name, stats.Title(m.Unit), unit, better(m.Better)}
			// Five columns for a run, and three more for its change.
			for i, c := range m.Cells {
				if len(c.Values) == 0 {
					row = append(row, nil, nil, nil, nil, nil)
				} else {
					row = append(row, len(c.Values), round(c.Summary.Center*scale),
						round(c.Summary.Lo*scale), round(c.Summary.Hi*scale), share(c.CV))
				}
				if i > 0 {
					row = append(row, change(c.Change)...)
				}
			}
			sheet.rows = append(sheet.rows, row)
		}
	}
	b.table(sheet)
}

// round drops what scaling adds to the last digits. 0.1 % of a nanosecond is no digit that anybody
// measured.
func round(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 13, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// change are the three cells that compare with the first run. What cannot be compared says so in
// the last of them, where people look for the verdict.
func change(c *stats.Change) []any {
	if c == nil {
		return []any{nil, nil, nil}
	}
	if c.Incomparable != "" {
		return []any{nil, nil, "not comparable: " + c.Incomparable}
	}
	p, verdict := c.P, "no"
	if c.Headline {
		p = c.Adjusted
	}
	switch {
	case c.Significant() && c.Headline:
		verdict = "yes"
	case c.Significant():
		verdict = "yes, taken alone"
	case len(c.Warnings) > 0:
		verdict = c.Warnings[0].Error()
	}
	return []any{share(c.Ratio), p, verdict}
}

// better is the direction of a metric, empty where nobody knows.
func better(direction int) any {
	switch direction {
	case 1:
		return "higher"
	case -1:
		return "lower"
	}
	return nil
}

// qos has a row for each class of each result.
func (b *book) qos(records []*load.Record) {
	sheet := table{name: "QoS Metrics",
		heads: []string{"QoS Level", "Total Requests", "Latency P95 (ms)", "Latency P99 (ms)",
			"SLA Met",
			"SLA Compliance", "SLA Target P95 (ms)", "Run", "Benchmark", "Trial"}, frozen: 1}
	for _, rec := range records {
		if rec.Result != nil && !view.Requests(rec.Result) {
			continue // single operations are of no class
		}
		levels, _ := rec.Lookup("summary.qos_metrics").(map[string]any)
		for _, level := range slices.Sorted(maps.Keys(levels)) {
			get := func(path string) any {
				return rec.Lookup("summary.qos_metrics." + level + "." + path)
			}
			if get("total_requests") == nil {
				continue // nothing of this class completed
			}
			sheet.rows = append(sheet.rows,
				[]any{level, get("total_requests"), get("latency_ms.p95"), get("latency_ms.p99"),
					get("sla.met"),
					get("sla.compliance"), get("sla.target_p95_ms"), rec.Source, stats.NameOf(rec),
					rec.Lookup("trial")})
		}
	}
	if len(sheet.rows) == 0 {
		sheet.rows = [][]any{{"No result has requests of a QoS class."}}
	}
	b.table(sheet)
}

// tracing has two sheets: sums, with a row for each histogram, and the buckets themselves, which
// others draw.
func (b *book) tracing(records []*load.Record) {
	sums := table{name: "Device Tracing",
		heads: []string{"Metric", "Description", "Samples", "P50", "P95", "P99", "Min Bucket",
			"Max Bucket", "Unit", "Run", "Benchmark", "Trial"}, frozen: 1}
	raw := table{name: "Trace Histograms",
		heads: []string{"Histogram", "Bucket Low", "Bucket High", "Count", "Unit", "Run",
			"Benchmark", "Trial"}, frozen: 1}
	for _, rec := range records {
		for _, h := range rec.Tracing() {
			sums.rows = append(sums.rows, []any{h.Title, h.What, float64(h.Count), *h.P50, *h.P95,
				*h.P99, h.Buckets[0].Range[0], h.Buckets[len(h.Buckets)-1].Range[1], h.Unit,
				rec.Source, stats.NameOf(rec), rec.Lookup("trial")})
			for _, k := range h.Buckets {
				raw.rows = append(raw.rows, []any{h.Title, k.Range[0], k.Range[1], float64(k.Count),
					h.Unit, rec.Source, stats.NameOf(rec), rec.Lookup("trial")})
			}
		}
	}
	if len(sums.rows) == 0 {
		none := [][]any{{"No result was traced: run with -enable-latency-tracing."}}
		sums.rows, raw.rows = none, none
	}
	b.table(sums)
	b.table(raw)
}
