package benchmarks

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// rank shows how the engines compare, and keeps it next to their results.
func (s *session) rank() error {
	text := ranking(s.results)
	if text == "" {
		return nil
	}
	fmt.Fprint(os.Stderr, text)
	path := filepath.Join(s.linesOf(result.BenchmarkEngines)[0].v.ResultsDir, "ranking.txt")
	text = strings.TrimPrefix(text, "\n")
	var err error
	if !within(patience, func() { err = os.WriteFile(path, []byte(text), 0o666) }) {
		return fmt.Errorf("no answer for %s", patience)
	}
	return err
}

// rankedLine is one line of Engines, an engine or a layout, with its trials.
type rankedLine struct {
	name, where string // engine=vllm at num-users=8
	results     []*result.Result
	found       []float64 // tokens per second, of each trial
	failed      int       // trials without numbers
	median      benchmath.Summary
}

// ranking returns one table per combination of the other swept parameters. Each row is an engine or a
// layout. The rows are sorted by median found tokens per second, highest first. Found tokens are prompt
// tokens that the cache had, so that no prefill computes them. The rate is low if the storage is fast
// and the hit rate is low. It is also low if the hit rate is high and the storage is slow. ranking
// returns "" if there are fewer than two rows to compare.
func ranking(results []*result.Result) string {
	var lines []*rankedLine
	for _, r := range results {
		if r.Benchmark != result.BenchmarkEngines {
			continue
		}
		name, where := subject(r.Name)
		i := slices.IndexFunc(lines,
			func(l *rankedLine) bool { return l.name == name && l.where == where })
		if i < 0 {
			i = len(lines)
			lines = append(lines, &rankedLine{name: name, where: where})
		}
		l := lines[i]
		if v := r.FoundTokensPerSecond(); r.Status == result.StatusComplete && v != nil {
			l.results, l.found = append(l.results, r), append(l.found, *v)
		} else {
			l.failed++
		}
	}
	var text strings.Builder
	for _, l := range lines {
		here := slices.DeleteFunc(slices.Clone(lines),
			func(o *rankedLine) bool { return o.where != l.where })
		if l == here[0] {
			rank(&text, here)
		}
	}
	return text.String()
}

// subject splits a line's name into the ranked elements and the other elements:
// Engines/engine=vllm/num-users=8 gives "engine=vllm" and "num-users=8".
func subject(name string) (ranked, where string) {
	var own, others []string
	for part := range strings.SplitSeq(strings.TrimPrefix(name, result.BenchmarkEngines+"/"), "/") {
		if strings.HasPrefix(part, "engine=") || strings.HasPrefix(part, "layout=") {
			own = append(own, part)
		} else {
			others = append(others, part)
		}
	}
	return strings.Join(own, " "), strings.Join(others, " ")
}

// rank writes one table, and notes about what makes its rows incomparable.
func rank(text *strings.Builder, lines []*rankedLine) {
	var notes []string
	for _, l := range lines {
		if l.failed > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d of %d trials gave no numbers", l.name,
				l.failed, l.failed+len(l.results)))
		}
	}
	lines = slices.DeleteFunc(lines, func(l *rankedLine) bool { return len(l.results) == 0 })
	if len(lines) < 2 {
		return
	}
	for _, l := range lines {
		sample := benchmath.NewSample(slices.Clone(l.found), &benchmath.DefaultThresholds)
		l.median = benchmath.AssumeNothing.Summary(sample, 0.95)
	}
	slices.SortStableFunc(lines, func(a, b *rankedLine) int {
		return cmp.Compare(b.median.Center, a.median.Center)
	})
	t := report.Section{Topic: "ranking", Columns: []report.Column{{},
		{Name: "found tok/s", Unit: units.Count}, {Name: "interval"},
		{Name: "of the first", Unit: units.Share}, {Name: "trials", Unit: units.Count},
		{Name: "found", Unit: units.Share}, {Name: "read size", Unit: units.Bytes},
		{Name: "in flight", Unit: units.Number}, {Name: "from memory", Unit: units.Share},
		{Name: "verdict"}}}
	partly, paced := 0, ""
	for _, l := range lines {
		t.Rows = append(t.Rows, l.row(lines[0].median.Center))
		// With a number of requests as the limit, all rows end at the same request of the trace.
		if slices.ContainsFunc(l.results, func(r *result.Result) bool {
			return r.PartOfInput() && r.EndedBy != result.EndedByMaxRequests
		}) {
			partly++
		}
		for _, p := range l.results[0].Parameters {
			if v, _, ok := units.Float(p.Value); p.Name == "trace-speedup" && ok && v > 0 {
				paced = units.Number.Text(v)
			}
		}
	}
	if partly > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d rows were stopped before the trace ended, "+
			"each at another request: they found other tokens; -benchtime has to be longer, or a "+
			"number of requests (-benchtime 1000x)", partly, len(lines)))
	}
	if paced != "" {
		notes = append(notes, "the trace's own times set the pace (-trace-speedup "+paced+
			"): rows that keep up with it are equal, however fast they are")
	}
	key, _, _ := strings.Cut(lines[0].name, "=")
	notes = append(notes, "median of the trials, and its 95 % interval, which needs 6 trials "+
		"(-count 6); differences with p values: benchstat -col /"+key)
	text.WriteString("\n")
	if where := lines[0].where; where != "" {
		fmt.Fprintf(text, "%-11s %s\n", "at", where)
	}
	text.WriteString(t.String())
	for _, n := range notes {
		fmt.Fprintf(text, "%-11s %s\n", "", n)
	}
}

// row returns the table row of a line: the median of its trials, what its typical trial did, and what
// limited the trials. The columns are the share of prompt tokens that were found, bytes per read request,
// requests in flight at the storage, and the share of the read bytes that the device did not serve.
func (l *rankedLine) row(first float64) []any {
	interval := units.Unknown
	if !math.IsInf(l.median.Lo, 0) && !math.IsInf(l.median.Hi, 0) {
		interval = fmt.Sprintf("%s–%s", units.Count.Text(l.median.Lo), units.Count.Text(l.median.Hi))
	}
	r := report.Typical(l.results)
	var found, memory *float64
	if p := r.Prompt; p != nil {
		found = units.Ratio(p.Found, p.Tokens)
	}
	load, device := r.DeviceCounters.AppReadBytes, r.DeviceCounters.ReadBytes
	if device != nil && r.Harness.Verdict.Kind != result.Shared { // else it served other processes, too
		memory = units.Ratio(max(0, load-*device), load)
	}
	reads, writes := r.StorageTraffic()
	var verdicts []string
	for _, r := range l.results {
		if kind := r.Harness.Verdict.Kind; !slices.Contains(verdicts, kind) {
			verdicts = append(verdicts, kind)
		}
	}
	return []any{l.name, l.median.Center, interval, units.Ratio(l.median.Center, first),
		int64(len(l.results)), found, units.Ratio(reads.Bytes, reads.Requests),
		units.Ratio(reads.InFlightNS+writes.InFlightNS, r.WindowNS), memory, strings.Join(verdicts, ", ")}
}
