package view

import (
	"fmt"
	"strconv"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/tools/stats"
)

// Part is what only some results have, for the page and for the workbook. One description serves
// both documents: heads for the page are short and in the order of reading, those for the workbook
// have units.
type Part struct {
	Title   string // on the page
	Sheet   string // in the workbook
	Words   []string
	Note    string
	Folded  bool // on the page: the table is long
	Columns []Column
	Rows    [][]any
}

// Column is one of a part's table. It is not shown where its head is empty. A column of one
// document only is one that the other says in words, or that a reader of numbers needs beside
// them.
type Column struct {
	Page, Sheet string
	Kind        Kind
}

// Kind says what the values of a column are. Values may be *float64, nil where they are not known.
type Kind int

// The kinds. The page writes units behind the numbers, the workbook into its heads.
const (
	Text   Kind = iota
	Plain       // a number as it is
	Count       // with its thousands apart
	Short       // three digits
	Digits      // the five digits by which a hit ratio is compared with the ideal one
	Share       // per cent in both
	Ratio       // per cent on the page only
	Moment      // s
	Millis      // ms
	Bytes       // bytes; GiB in the workbook
	Rate        // bytes/s; GiB/s in the workbook
)

// Float is a value as a number, false when it is not known.
func Float(v any) (float64, bool) {
	switch x := v.(type) {
	case int:
		return float64(x), true
	case int64:
		return float64(x), true
	case float64:
		return x, true
	case *float64:
		if x != nil {
			return *x, true
		}
	}
	return 0, false
}

// Unknown says that a value is a number which nobody knows.
func Unknown(v any) bool { x, ok := v.(*float64); return v == nil || ok && x == nil }

// cell is a value on the page. The judgement of a validation is coloured, and says itself in
// words.
func (k Kind) cell(v any) Cell {
	if c, ok := v.(result.NamedCheck); ok {
		cell := Cell{Text: c.Word()}
		if c.Passed != nil {
			cell.Class = map[bool]string{true: "better", false: "worse"}[*c.Passed]
		}
		return cell
	}
	// What is text stays text, whatever it looks like.
	x, _ := Float(v)
	switch {
	case k == Text:
		return Cell{Text: fmt.Sprint(v)}
	case Unknown(v):
		return num("–")
	}
	switch k {
	case Count:
		return num(stats.Thousands(int64(x)))
	case Short:
		return num(stats.Number(x))
	case Digits:
		return num(strconv.FormatFloat(x, 'f', 5, 64))
	case Share, Ratio:
		return num(percent(x))
	case Moment:
		return num(stats.Number(x) + " s")
	case Millis:
		return num(stats.Seconds(x / 1e3))
	case Bytes:
		return num(stats.Binary(x))
	case Rate:
		return num(stats.Binary(x) + "/s")
	}
	return num(fmt.Sprint(v))
}

// Table is the part's table on the page, nil where it has none. A head of one blank is a column
// without a title.
func (p Part) Table() *Grid {
	g := &Grid{Note: p.Note}
	for _, c := range p.Columns {
		if c.Page != "" {
			g.Head = append(g.Head, strings.TrimSpace(c.Page))
		}
	}
	for _, row := range p.Rows {
		var cells []Cell
		for i, c := range p.Columns {
			if c.Page != "" {
				cells = append(cells, c.Kind.cell(row[i]))
			}
		}
		g.Rows = append(g.Rows, cells)
	}
	if len(g.Head) == 0 || len(g.Rows) == 0 {
		return nil
	}
	return g
}

// Parts are those of a result, in the order in which they are shown. The first says that a result
// is a prediction, if it is one.
func Parts(r *result.Result) (list []Part) {
	for _, part := range []func(*result.Result) *Part{simulation, autoscaling, blocks, replay,
		validation} {
		if p := part(r); p != nil {
			list = append(list, *p)
		}
	}
	return list
}

// parts are those of the median trial of each run.
func parts(typical []trial, t *stats.Table) (out []Part) {
	for _, k := range typical {
		for _, p := range Parts(k.Result) {
			if len(t.Runs) > 1 {
				p.Title += ", " + t.Labels[k.run]
			}
			out = append(out, p)
		}
	}
	return out
}

// simulation says what model made the times, or that there was none. The workbook has the model's
// parameters as columns; on the page they are a sentence, because there is one row of them.
func simulation(r *result.Result) *Part {
	s := r.Simulation
	if s == nil {
		return nil
	}
	// Without a model of a device storage is infinitely fast, and its columns stay empty.
	row := []any{r.Notice, nil, nil, nil, nil, nil, nil}
	words := []string{"Storage was infinitely fast: latencies are 0 and rates are those of the " +
		"load."}
	if d := s.Device; d != nil {
		row = []any{r.Notice, d.Read, d.Write,
			float64(d.ReadLatency) / 1e3, float64(d.WriteLatency) / 1e3, d.Parallelism, d.Duplex}
		words = deviceWords(r, d)
	}
	return &Part{Title: "Simulated, not measured", Sheet: "Simulation", Words: words,
		Columns: []Column{
			{"", "Notice", Text}, {"", "Model Read (GiB/s)", Rate},
			{"", "Model Write (GiB/s)", Rate},
			{"", "Model Read Latency (µs)", Plain}, {"", "Model Write Latency (µs)", Plain},
			{"", "Model Parallelism", Plain}, {"", "Model Duplex", Plain},
			{"", "Medium Busy", Share},
			{"", "Sustained Users", Plain}, {"", "Users", Plain},
			{"", "Queue Growth (requests/s)", Plain},
			{"", "I/O Trace Rows", Plain}, {"", "Computed In (s)", Plain}},
		Rows: [][]any{append(row, s.DeviceBusyShare, s.SustainedUsers, r.Workload.Users,
			s.QueueGrowth,
			s.TraceRows, float64(s.WallNS)/1e9)}}
}

// deviceWords is the model in words, and how near it was to its limit.
func deviceWords(r *result.Result, d *result.SimulatedDevice) []string {
	medium := "one medium for reads and writes"
	if d.Duplex {
		medium = "a medium for each direction"
	}
	s := r.Simulation
	line := "Its medium was busy " + known(s.DeviceBusyShare, percent) + " of the time"
	if s.QueueGrowth != nil {
		line += ", the queue grew by " + stats.Number(*s.QueueGrowth) + " requests/s"
	}
	if s.SustainedUsers != nil {
		line += fmt.Sprintf(", and it would sustain %s of %d users",
			stats.Number(*s.SustainedUsers), r.Workload.Users)
	}
	return []string{fmt.Sprintf("The times are those of a model of a device: reads %s/s after "+
		"%s, writes %s/s after %s, %d requests at a time, %s.", stats.Binary(d.Read), d.ReadLatency,
		stats.Binary(d.Write), d.WriteLatency, d.Parallelism, medium), line + "."}
}

// autoscaling has a row for each round: what ran, what the storage did, and what was decided.
func autoscaling(r *result.Result) *Part {
	s := r.Summary.AutoscalingSummary
	if s == nil {
		return nil
	}
	found := "found"
	if !s.Found {
		found = "the window ended before it was found"
	}
	p := &Part{Title: "Autoscaler", Sheet: "Autoscaling", Folded: true,
		Words: []string{fmt.Sprintf("%s: %d users sustained (%s), at most %d ran, at most %s/s; "+
			"%d rounds, from %d "+
			"to %d users.", s.Mode, s.SustainedUsers, found, s.PeakUsers, stats.Binary(s.PeakRate),
			s.Rounds,
			s.InitialUsers, s.FinalUsers)},
		Note: "Latencies are per 100 MiB; noise is two standard errors of the rate.",
		Columns: []Column{{"round", "Round", Plain}, {"ended at", "Ended At (s)", Moment},
			{"users", "Users", Plain}, {"workers", "Workers", Plain},
			{"goroutines", "Goroutines", Plain},
			{"storage rate", "Storage Rate (GiB/s)", Rate}, {"noise", "Noise (GiB/s)", Rate},
			{"read p95", "Read P95 per 100 MiB (ms)", Millis},
			{"write p95", "Write P95 per 100 MiB (ms)", Millis},
			{"saturation", "Saturation", Share}, {"then users", "Next Users", Plain},
			{"decision", "Decision", Text}, {"", "Mode", Text}, {"", "Users Sustained", Plain},
			{"", "Peak Users", Plain}, {"", "Peak Rate (GiB/s)", Rate}, {"", "Found", Plain}}}
	// Mode and outcome stand in every row, so that rows of many results can be filtered.
	for i, x := range r.Summary.AutoscalingStats {
		p.Rows = append(p.Rows, []any{i + 1, x.AtS, x.Users, x.Workers, x.Goroutines,
			x.BytesPerSecond, x.Noise,
			x.ReadP95, x.WriteP95, x.Saturation, x.NextUsers, x.Decision, s.Mode, s.SustainedUsers,
			s.PeakUsers,
			s.PeakRate, s.Found})
	}
	return p
}

// blocks sets the hit ratio of a block trace beside that of a cache without bounds, to five
// digits: policies differ in the fourth.
func blocks(r *result.Result) *Part {
	b := r.BlockCache
	if b == nil {
		return nil
	}
	return &Part{Title: "Block cache", Sheet: "Block Cache",
		Note: "Ideal is a cache without bounds on the same requests. The prefix-hit ratio is the " +
			"share of the " +
			"requests of which at least the first block was found.",
		Columns: []Column{{"block hit ratio", "Block Hit Ratio", Digits},
			{"ideal", "Ideal Hit Ratio", Digits},
			{"prefix-hit ratio", "Prefix-hit Ratio", Ratio},
			{"tokens hit", "Token Hit Ratio", Ratio},
			{"bytes saved", "Bytes Saved (GiB)", Bytes}, {"", "Requests", Count},
			{"blocks asked for", "Blocks", Count},
			{"hit", "Hits", Count}, {"", "Pending Hits", Count}, {"written", "Written", Count},
			{"behind a missing one", "Behind a Missing One", Count}},
		Rows: [][]any{{b.HitRatio, b.IdealHitRatio, b.PrefixHitRatio, b.TokenHitRatio, b.BytesSaved,
			b.Requests,
			b.Blocks, b.Hits, b.Pending, b.Written, b.Unreachable}}}
}

// replay counts what became of the rows of an I/O trace.
func replay(r *result.Result) *Part {
	p := r.Replay
	if p == nil {
		return nil
	}
	return &Part{Title: "Replay of an I/O trace", Sheet: "Replay",
		Note: "Reads of evicted and of never written entries, and writes larger than the tier, " +
			"cost no I/O.",
		Columns: []Column{{"rows", "Rows", Count}, {"not selected", "Not Selected", Count},
			{"reads", "Reads", Count}, {"writes", "Writes", Count}, {"deletes", "Deletes", Count},
			{"reads of evicted", "Reads of Evicted", Count},
			{"reads of never written", "Reads of Never Written", Count},
			{"", "Deletes of Unknown", Count},
			{"overwrites", "Overwrites", Count}, {"too large", "Too Large", Count},
			{"deleted for room", "Deleted for Room", Count},
			{"largest delay", "Largest Delay (ms)", Millis}},
		Rows: [][]any{{p.Rows, p.Skipped, p.Reads, p.Writes, p.Deletes, p.EvictedReads,
			p.UnwrittenReads,
			p.UnknownDeletes, p.Overwrites, p.TooLarge, p.Evictions, float64(p.LateNS) / 1e6}}}
}

// validation sets what was measured beside what was recorded.
func validation(r *result.Result) *Part {
	v := r.Validation
	if v == nil {
		return nil
	}
	word := "Failed: not within"
	if v.Passed {
		word = "Passed: within"
	}
	p := &Part{Title: "Validation against a recorded run", Sheet: "Validation",
		Words: []string{fmt.Sprintf("%s %s of %s (%s requests, %s malformed).", word,
			percent(v.Tolerance), v.Trace,
			stats.Thousands(v.Requests), stats.Thousands(v.Malformed))},
		Columns: []Column{{" ", "Number", Text}, {"run", "This Run", Short},
			{"recorded", "Recorded", Short},
			{"difference", "Difference", Share}, {"", "Tolerance", Share},
			{"judged", "Judged", Text},
			{"", "Validation Passed", Plain}, {"", "Recorded Requests", Count},
			{"", "Malformed Rows", Count},
			{"", "Recorded In", Text}}}
	for _, c := range v.Checks() {
		p.Rows = append(p.Rows, []any{c.Name, c.Measured, c.Recorded, c.Difference, v.Tolerance, c,
			v.Passed, v.Requests, v.Malformed, v.Trace})
	}
	return p
}
