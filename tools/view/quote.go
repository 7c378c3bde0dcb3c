package view

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"kvbench/kvbench/report"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Quote is what a mail says about the runs: the sentences at the top of the page, and the headline
// numbers as text.
type Quote struct {
	Subject string // what ran on what
	Answers []Answer
	Tables  []report.Section // one for each run after the first, or one for a single run
	Drives  []string         // how each run's drive was prepared
	Told    bool             // at least one row has an answer
}

// NewQuote makes the quote of the records. t is their comparison.
func NewQuote(records []*load.Record, t *stats.Table) Quote {
	q := Quote{Subject: whatRan(records, t), Answers: answers(t)}
	for run := range t.Runs {
		q.Drives = append(q.Drives, preparation(t, run))
		if run == 0 {
			continue
		}
		s := report.Section{Topic: "quote", Columns: []report.Column{{Name: "benchmark"},
			{Name: t.Labels[0]}, {Name: t.Labels[run]}, {Name: "ratio"}, {Name: "95 % interval"},
			{Name: "storage-limited"}, {Name: t.Labels[run] + " is"}}}
		for _, b := range t.Headlines() {
			outcome := compared(b, run)
			if outcome != "" {
				s.Rows = append(s.Rows, comparison(t, b, run, outcome))
			}
			q.Told = q.Told || slices.Contains(told, outcome)
		}
		q.Tables = append(q.Tables, s)
	}
	return q
}

// comparison returns the row of a benchmark whose run is compared with the first one.
func comparison(t *stats.Table, b *stats.Benchmark, run int, outcome string) []any {
	m := b.Headline()
	first, c := m.Cells[0], m.Cells[run]
	is, between := strings.TrimSuffix(outcome, " at"), []any{units.Unknown, units.Unknown}
	switch outcome {
	case absent:
		is = "not measured by both"
	case notLimited:
		var why []string
		for _, side := range []int{0, run} {
			if kind, _ := b.Mostly(side); !b.Limited(side) {
				why = append(why, t.Labels[side]+" "+kind)
			}
		}
		is = "not compared: " + strings.Join(why, ", ")
	default:
		between = []any{ratio(c.Change), interval(c.Change)}
	}
	switch n := min(first.N(), c.N()); outcome {
	case tooFew:
		is = c.Change.Unjudged
	case chance:
		is = "no different as far as these trials show"
		if n = c.Change.Enough(n, m.Better); n > 0 {
			is = fmt.Sprintf("not told apart; %d trials could", n)
		}
	}
	return slices.Concat([]any{b.Name, Median(first, m.Unit, m.Cells).Text,
		Median(c, m.Unit, m.Cells).Text}, between, []any{b.LimitedCount(0) + ", " + b.LimitedCount(run), is})
}

// Text returns the quote for a terminal and for a mail in plain text.
func (q Quote) Text() string { return q.print(report.Section.String, "") }

// Markdown returns the quote for a comment.
func (q Quote) Markdown() string { return q.print(markdown, "- ") }

// print prints the tables, and below them the sentences.
func (q Quote) print(table func(report.Section) string, bullet string) string {
	var b strings.Builder
	for _, s := range q.Tables {
		b.WriteString(table(s) + "\n")
	}
	lines := []string{q.Subject}
	for _, a := range q.Answers {
		lines = append(lines, a.Text)
	}
	for _, line := range append(lines, q.Drives...) {
		b.WriteString(bullet + line + "\n")
	}
	return b.String()
}

// markdown returns a table in Markdown.
func markdown(s report.Section) string {
	var b strings.Builder
	heads, rule := []any{}, []any{}
	for _, c := range s.Columns {
		heads, rule = append(heads, c.Name), append(rule, "---")
	}
	for _, row := range slices.Concat([][]any{heads, rule}, s.Rows) {
		for i, v := range row {
			b.WriteString("| " + strings.ReplaceAll(s.Columns[i].Unit.Text(v), "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// whatRan says what ran on what.
func whatRan(records []*load.Record, t *stats.Table) string {
	least, most := len(records), 0
	for _, b := range t.Benchmarks {
		for _, n := range b.Count {
			if n > 0 {
				least, most = min(least, n), max(most, n)
			}
		}
	}
	trials := units.Plural(most, "trial")
	if least < most {
		trials = fmt.Sprintf("%d to %s", least, trials)
	}
	var where []string
	for i, run := range runs(records, t) {
		places := slices.Concat(run.Facts.Values("device"), run.Facts.Values("cache directory"))
		if text := strings.Join(places, ", "); len(places) > 0 && len(t.Runs) > 1 {
			where = append(where, t.Labels[i]+" on "+text)
		} else if len(places) > 0 {
			where = append(where, "on "+text)
		}
	}
	text := fmt.Sprintf("%s of %s, %s of each", units.Plural(len(t.Runs), "run"),
		units.Plural(len(t.Benchmarks), "benchmark"), trials)
	return strings.Join(append([]string{text}, where...), "; ") + "."
}

// The steady state and the amount of writes before it, of SNIA's Solid State Storage Performance Test
// Specification for enterprise (PTS-E 2.0.2): 2 × the capacity written after a purge; then, over five
// rounds, the rates stay within 20 % of their mean, and a line through them within 10 %.
const (
	steadyRounds = 5
	steadyRange  = 0.2
	steadySlope  = 0.1
	writtenOften = 2
)

// preparation says whether a run's drive was prepared as SNIA's test asks, as far as the results know.
func preparation(t *stats.Table, run int) string {
	written, steady, rows := int64(0), 0, 0
	sizes := map[string]int64{} // by device
	for _, b := range t.Benchmarks {
		for _, rec := range b.Trials[run] {
			if r := rec.Result; r != nil && r.Simulation == nil {
				written += r.DeviceCounters.AppWriteBytes
				if r.Precondition != nil {
					written += r.Precondition.Bytes
				}
				for _, root := range roots(r) {
					if d := root.BlockDevice; d != nil {
						sizes[d.Name] = units.OrZero(d.SizeBytes)
					}
				}
			}
		}
		if m := b.Headline(); m != nil && m.Cells[run].N() > 0 {
			if rows++; isSteady(m.Cells[run].Values) {
				steady++
			}
		}
	}
	room := int64(0)
	for _, size := range sizes {
		room += size
	}
	share := units.Ratio(written, float64(room))
	if room == 0 || share == nil {
		return t.Labels[run] + ": not known whether the drive was preconditioned: no block device in the results."
	}
	text := "not preconditioned"
	if *share >= writtenOften && steady == rows {
		text = "preconditioned if it was purged before"
	}
	return fmt.Sprintf("%s: %s as SNIA PTS-E asks (purge, 2 × the capacity written, steady state): the run wrote "+
		"%s, %s of the device's %s; %d of %s steady over %d trials.", t.Labels[run], text,
		units.Bytes.Text(written), times(*share), units.Bytes.Text(room), steady, units.Plural(rows, "row"), steadyRounds)
}

// isSteady reports whether the last rounds of a row's trials were in steady state.
func isSteady(values []float64) bool {
	if len(values) < steadyRounds {
		return false
	}
	values = values[len(values)-steadyRounds:]
	mean := stat.Mean(values, nil)
	_, slope := stat.LinearRegression([]float64{0, 1, 2, 3, 4}, values, nil, false)
	return slices.Max(values)-slices.Min(values) <= steadyRange*mean &&
		math.Abs(slope)*(steadyRounds-1) <= steadySlope*mean
}
