package view

import (
	"cmp"
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
	Subject string           // what ran on what
	Answers []string         // one for each run after the first, or one for a single run
	Tables  []report.Section // as many as answers
	Drives  []string         // how each run's drive was preconditioned
	Decided bool             // at least one row has an answer
}

// NewQuote makes the quote of the records. t is their comparison.
func NewQuote(records []*load.Record, t *stats.Table) Quote {
	q := Quote{Subject: whatRan(records, t), Answers: answers(t)}
	if len(t.Runs) == 1 {
		q.ofOne(records, t)
	}
	for run := range t.Runs {
		if run > 0 {
			q.compare(t, run)
		}
		q.Drives = append(q.Drives, preparation(t, run))
	}
	return q
}

// ofOne adds the table of a single run, and how many of its rows may be quoted.
func (q *Quote) ofOne(records []*load.Record, t *stats.Table) {
	s := report.Quote(results(records))
	for _, h := range t.Headlines() {
		reason, n := lacksResult(h.Trials[0])
		if n == 0 {
			continue
		}
		if n == len(h.Trials[0]) {
			s.Rows = append(s.Rows, []any{h.Name, strings.TrimSuffix(h.Label, "-B/s"), Median(h.Cells[0], h.Unit, h.Cells).Text,
				units.Unknown, units.Unknown, "no: without result file", units.Unknown})
		}
		s.Below = append(s.Below, fmt.Sprintf("%s: %s without a result file, and so without a verdict: %s", h.Row(),
			units.Plural(n, "trial"), reason))
	}
	var quotable []string
	for _, row := range s.Rows {
		if row[5] == report.Quotable {
			quotable = append(quotable, fmt.Sprintf("%s %s (%s)", row[0], row[2], row[1]))
		}
	}
	text := fmt.Sprintf("%d of %s may be quoted", len(quotable), units.Plural(len(s.Rows), "row"))
	if q.Decided = len(quotable) > 0; q.Decided {
		text += ": " + some(quotable)
	}
	q.Tables, q.Answers = []report.Section{s}, []string{text + "."}
}

// lacksResult returns how many trials have no result file of kvbench, and why the first of them has none.
func lacksResult(trials []*load.Record) (reason string, n int) {
	for _, rec := range trials {
		if rec.Result != nil {
			continue
		}
		n++
		reason = cmp.Or(reason, rec.Missing)
	}
	return cmp.Or(reason, "the input names none"), n
}

// compare adds the table of a run and the first run.
func (q *Quote) compare(t *stats.Table, run int) {
	s := report.Section{Topic: "quote", Columns: []report.Column{{Name: "benchmark"},
		{Name: t.Labels[0]}, {Name: t.Labels[run]}, {Name: "ratio"}, {Name: "95 %"}, {Name: "valid"},
		{Name: t.Labels[run] + " is"}}, Below: []string{
		"95 %: the interval of the ratio; valid: the trials that the storage limited",
		"in brackets: why nothing is shown, or why the rates must not be quoted"}}
	var notes report.Notes
	for _, h := range t.Headlines() {
		outcome := compared(h, run)
		if outcome == "" {
			continue
		}
		q.Decided = q.Decided || slices.Contains(decided, outcome)
		row := []any{h.Row()}
		for _, c := range []stats.Cell{h.Cells[0], h.Cells[run]} {
			row = append(row, Median(c, h.Unit, h.Cells).Text)
		}
		if c := h.Cells[run].Change; outcome == absent || outcome == stats.NotLimited {
			row = append(row, units.Unknown, units.Unknown)
		} else {
			row = append(row, ratio(c), interval(c))
		}
		is, why := finding(h, run, outcome)
		if outcome != absent {
			why = slices.Concat(why, caveats(h, 0), caveats(h, run))
		}
		s.Rows = append(s.Rows, append(row, validCount(h.Benchmark, 0)+", "+validCount(h.Benchmark, run),
			is+notes.Add(why...)))
	}
	s.Below = append(s.Below, notes.Lines()...)
	q.Tables = append(q.Tables, s)
}

// validCount returns the number of trials in which the storage was the limit: 4/6.
func validCount(b *stats.Benchmark, run int) string {
	valid, all := b.Valid(run)
	if all == 0 {
		return units.Unknown
	}
	return fmt.Sprintf("%d/%d", valid, all)
}

// caveats returns why the headline of a run must not be quoted as the storage's.
func caveats(h stats.Headline, run int) []string {
	if results := h.Results(run); stats.OnStorage(h.Name) && len(results) > 0 {
		return report.Doubts(results, h.Label)
	}
	return nil
}

// finding says how a run compares with the first one, and if nothing was found, why.
func finding(h stats.Headline, run int, outcome string) (is string, why []string) {
	switch {
	case outcome == chance:
		return "not shown", []string{wouldShow(h, run)}
	case outcome == absent || outcome == stats.NotLimited:
		return "not compared", []string{outcome}
	case tested(outcome):
		return outcome, nil
	}
	return "not shown", []string{outcome}
}

// wouldShow says which number of trials would show the difference, or which difference these trials would.
func wouldShow(h stats.Headline, run int) string {
	c, n := h.Cells[run].Change, min(h.Cells[0].N(), h.Cells[run].N())
	s := c.Sight(h.Better, 0, stats.Alpha/2)
	if enough := c.Enough(h.Better, n, math.Abs(s.Loss), stats.Alpha/2); enough > 0 {
		return fmt.Sprintf("no difference shown; about %d trials of each could", enough)
	}
	return "no difference shown; one of " + units.Share.Text(s.Sees) + " would probably show"
}

// Text returns the quote for a terminal and for a mail in plain text.
func (q Quote) Text() string { return q.print(report.Section.Alone, "") }

// Markdown returns the quote for a comment.
func (q Quote) Markdown() string { return q.print(report.Section.Markdown, "- ") }

// print prints the tables, and below them the sentences.
func (q Quote) print(table func(report.Section) string, bullet string) string {
	var b strings.Builder
	for _, s := range q.Tables {
		b.WriteString(table(s) + "\n")
	}
	for _, line := range slices.Concat([]string{q.Subject}, q.Drives, q.Answers) {
		b.WriteString(bullet + line + "\n")
	}
	return b.String()
}

// whatRan says what ran on what.
func whatRan(records []*load.Record, t *stats.Table) string {
	var counts []int
	for _, b := range t.Benchmarks {
		counts = append(counts, b.Count...)
	}
	slices.Sort(counts)
	counts = slices.DeleteFunc(slices.Compact(counts), func(n int) bool { return n == 0 })
	trials := units.Plural(counts[len(counts)-1], "trial")
	if len(counts) > 1 {
		trials = fmt.Sprintf("%d to %s", counts[0], trials)
	}
	text := fmt.Sprintf("%s of %s, %s of each", units.Plural(len(t.Runs), "result set"),
		units.Plural(len(t.Benchmarks), "benchmark"), trials)
	for i, run := range runs(records, t) {
		places := slices.Concat(run.Facts.Values("device"), run.Facts.Values("cache directory"))
		if len(places) > 0 {
			text += fmt.Sprintf("; %s on %s", t.Labels[i], strings.Join(places, ", "))
		}
	}
	return text + "."
}

// The steady state and the amount of writes before it, of SNIA's Solid State Storage Performance Test
// Specification (PTS 2.0.2): 2 × the capacity written after a purge; then, over five
// rounds, the rates stay within 20 % of their mean, and a line through them within 10 %.
const (
	steadyRounds = 5
	steadyRange  = 0.2
	steadySlope  = 0.1
	writtenOften = 2
)

// preparation says whether a run's drive was preconditioned as SNIA's test asks, as far as the results know.
func preparation(t *stats.Table, run int) string {
	written, rows, steady := int64(0), 0, 0
	sizes := map[string]int64{} // by device, of all hosts
	for _, b := range t.Benchmarks {
		for _, rec := range b.Trials[run] {
			if r := rec.Result; r != nil && r.Simulation == nil {
				hosts := int64(1) // each with a device of that name
				if r.Clients != nil {
					hosts = max(1, int64(len(r.Clients.Hosts)))
				}
				written += r.DeviceCounters.AppWriteBytes
				if r.Precondition != nil {
					written += r.Precondition.Bytes
				}
				for _, root := range r.Roots() {
					if d := root.BlockDevice; d != nil {
						sizes[d.Name] = hosts * units.OrZero(d.SizeBytes)
					}
				}
			}
		}
	}
	for _, h := range t.Headlines() {
		if c := h.Cells[run]; c.N() > 0 {
			if rows++; isSteady(c.Values) {
				steady++
			}
		}
	}
	room := int64(0)
	for _, size := range sizes {
		room += size
	}
	preconditioned := "not preconditioned as SNIA PTS asks"
	switch {
	case room == 0:
		return t.Labels[run] + ": the results name no block device, so that its preparation is not known."
	case written >= writtenOften*room && steady == rows:
		preconditioned = "preconditioned as SNIA PTS asks, if the drive was purged and these bytes cover all of it"
	}
	return fmt.Sprintf("%s: %s: %d of %s steady, %s the capacity written (%s).", t.Labels[run], preconditioned,
		steady, units.Plural(rows, "row"), times(float64(written)/float64(room)), units.Bytes.Text(written))
}

// isSteady reports whether the rates of the last steadyRounds trials are a steady state.
func isSteady(rates []float64) bool {
	if len(rates) < steadyRounds {
		return false
	}
	rates = rates[len(rates)-steadyRounds:]
	mean := stat.Mean(rates, nil)
	_, slope := stat.LinearRegression([]float64{0, 1, 2, 3, 4}, rates, nil, false)
	return slices.Max(rates)-slices.Min(rates) <= steadyRange*mean &&
		math.Abs(slope)*(steadyRounds-1) <= steadySlope*mean
}
