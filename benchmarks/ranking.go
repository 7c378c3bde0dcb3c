package benchmarks

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// rankedLine is one line of Engines, an engine or a layout, with its trials.
type rankedLine struct {
	name    string // engine=vllm
	results []*result.Result
	found   []float64 // tokens per second, of each trial
	failed  int       // trials without numbers
	median  benchmath.Summary
}

// ranking is the table of the lines of Engines by their median of found tokens per second, best
// first: one table for each point of what else was swept. Found tokens are tokens of prompts that
// need not be computed: a fast storage with few hits finds few of them per second, as does a slow
// one with many. "" where there are fewer than two lines to compare.
func ranking(results []*result.Result) string {
	points := map[string][]*rankedLine{}
	var wheres []string
	for _, r := range results {
		if r.Benchmark != result.BenchmarkEngines {
			continue
		}
		name, where := subject(r.Name)
		if points[where] == nil {
			wheres = append(wheres, where)
		}
		i := slices.IndexFunc(points[where], func(l *rankedLine) bool { return l.name == name })
		if i < 0 {
			i = len(points[where])
			points[where] = append(points[where], &rankedLine{name: name})
		}
		l := points[where][i]
		v := r.FoundTokensPerSecond()
		if r.Status != result.StatusComplete || v == nil {
			l.failed++
			continue
		}
		l.results, l.found = append(l.results, r), append(l.found, *v)
	}
	var text strings.Builder
	for _, where := range wheres {
		if len(points[where]) > 1 {
			rank(&text, where, points[where])
		}
	}
	return text.String()
}

// subject splits a name: Engines/engine=vllm/num-users=8 is engine=vllm at num-users=8.
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

// rank writes one table and what makes its rows incomparable.
func rank(text *strings.Builder, where string, lines []*rankedLine) {
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
	t := report.Table{Topic: "ranking", Columns: []report.Column{{Text: " "}, {Text: "found tok/s", Unit: units.Count},
		{Text: "interval"}, {Text: "of the first", Unit: units.Share},
		{Text: "trials", Unit: units.Count}, {Text: "found", Unit: units.Share},
		{Text: "a read", Unit: units.Bytes}, {Text: "in flight", Unit: units.Number},
		{Text: "from memory", Unit: units.Share}, {Text: "verdict"}}}
	partly, paced := 0, ""
	for _, l := range lines {
		sample := benchmath.NewSample(slices.Clone(l.found), &benchmath.DefaultThresholds)
		l.median = benchmath.AssumeNothing.Summary(sample, 0.95)
	}
	slices.SortStableFunc(lines, func(a, b *rankedLine) int {
		return cmp.Compare(b.median.Center, a.median.Center)
	})
	for _, l := range lines {
		interval := units.Unknown
		if !math.IsInf(l.median.Lo, 0) && !math.IsInf(l.median.Hi, 0) {
			interval = fmt.Sprintf("%s–%s", units.Count.Text(l.median.Lo),
				units.Count.Text(l.median.Hi))
		}
		found, read, inFlight, memory, verdicts := l.facts()
		t.Rows = append(t.Rows, []any{l.name, l.median.Center, interval,
			units.Ratio(l.median.Center, lines[0].median.Center), int64(len(l.results)), found,
			read, inFlight, memory, verdicts})
		// After a number of requests all were at the same place in the trace.
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
	if where != "" {
		fmt.Fprintf(text, "%-11s %s\n", "at", where)
	}
	text.WriteString(t.String())
	for _, n := range notes {
		fmt.Fprintf(text, "%-11s %s\n", "", n)
	}
}

// facts sums over the trials before it divides: the share of the prompts' tokens that were found,
// bytes of a read request, requests in flight at the storage, the share of the bytes read that the
// device did not see, and what limited the trials.
func (l *rankedLine) facts() (found, read, inFlight, memory *float64, verdicts string) {
	var tokens, hits, bytes, requests, flight, window, device, load float64
	for _, r := range l.results {
		if p := r.Prompt; p != nil {
			tokens, hits = tokens+float64(p.Tokens), hits+float64(p.Found)
		}
		reads, writes := r.StorageTraffic()
		bytes, requests = bytes+float64(reads.Bytes), requests+float64(reads.Requests)
		flight += float64(reads.InFlightNS + writes.InFlightNS)
		window += float64(r.WindowNS)
		load += float64(r.DeviceWitness.AppReadBytes)
		if n := r.DeviceWitness.ReadBytes; n != nil {
			device += float64(*n)
		} else {
			load = math.NaN() // without the counters of one trial the share is not known
		}
		if kind := r.Harness.Verdict.Kind; !strings.Contains(verdicts, kind) {
			verdicts = strings.TrimPrefix(verdicts+", "+kind, ", ")
		}
	}
	if memory = units.Ratio(load-device, load); memory != nil {
		*memory = max(0, *memory) // the device may also have served others
	}
	return units.Ratio(hits, tokens), units.Ratio(bytes, requests), units.Ratio(flight, window),
		memory, verdicts
}
