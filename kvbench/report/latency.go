package report

import (
	"fmt"
	"maps"
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// distributions is a table with a row for each distribution that has samples. p99.9 needs ten
// thousand of them and is unknown in most trials; it stands there because it is what long trials
// are made for.
func distributions(topic, what string) *Table {
	return &Table{Topic: topic, Columns: head(what, units.Count, "samples",
		units.Nanoseconds, "mean", "p50", "p95", "p99", "p99.9", "max")}
}

// distribution adds a row. Percentiles with too few samples are unknown.
func (t *Table) distribution(name string, d result.Distribution) {
	t.some(name, d.Count, d.Mean, d.P50, d.P95, d.P99, d.P999, d.Max)
}

// latencies are those of entries, those of requests, and the rates of single entries. An
// operation's device time, its share of demotions and its latency per 100 MiB stand below it:
// together they tell whether the drive is slow or the entries are large.
func latencies(r *result.Result) []Table {
	entry := distributions("latency", "per entry")
	rates := &Table{Columns: head("effective rate of one entry", units.Count, "samples",
		units.BytesPerSec, "p5", "p50")}
	// Each tier's reads and writes, fastest tier first.
	for n, t := range r.Tiers {
		l := r.Latency.Levels[t.Level]
		for i, o := range []result.OpLatency{l.Read, l.Write} {
			name := t.Level + []string{" read", " write"}[i]
			// Parts are indented below their operation, unless there is none of it.
			part := "  "
			if o.IO.Count == 0 { // demotions only
				part = name + " "
			}
			entry.distribution(name, o.IO)
			entry.distribution(part+"device", o.Device)
			entry.distribution(part+"demotion", o.Demotion)
			entry.distribution(part+"per 100 MiB", o.Per100MiB)
			// What other tools call latency. Of the slowest tier only: lines are few.
			if n == len(r.Tiers)-1 {
				entry.distribution(part+"I/O request", o.Request)
			}
			rates.some(name, o.Rate.Count, o.Rate.P5, o.Rate.P50)
		}
	}
	l := r.Latency
	entry.distribution("prefix read", l.PrefixRead)
	entry.distribution("write admission", l.WriteAdmission)
	entry.distribution("space wait", l.SpaceWait)
	entry.distribution("pending wait", l.PendingWait)

	request := distributions("", "per request")
	request.distribution("end to end", l.Request.EndToEnd)
	request.distribution("queue", l.Request.Queue)
	request.distribution("storage I/O", l.Request.Storage)
	request.distribution("prefill", l.Request.Prefill)
	request.distribution("decode", l.Request.Decode)
	return []Table{*entry, *request, *rates}
}

// bySize shows the slowest tier only: it is what the trial is about, and lines are few. Entries of
// a class differ by at most four, so that their latencies can be read without scaling them.
func bySize(r *result.Result) (t Table) {
	if len(r.Tiers) == 0 {
		return t
	}
	name := r.Tiers[len(r.Tiers)-1].Level
	t.Columns = head(name+" by size", units.Count, "reads", units.Nanoseconds, "p50", "p95",
		units.Count, "writes", units.Nanoseconds, "p50", "p95")
	// A size class is listed by an operation that moved entries of it: by reads, by writes or by
	// both.
	labels, moved := map[int64]string{}, map[int64][2]result.Distribution{}
	lat := r.Latency.Levels[name]
	for op, classes := range [][]result.SizeLatency{lat.Read.BySize, lat.Write.BySize} {
		for _, c := range classes {
			labels[c.FromBytes] = "≥ " + bytes(c.FromBytes)
			if c.ToBytes != nil {
				labels[c.FromBytes] = bytes(c.FromBytes) + " – " + bytes(c.ToBytes)
			}
			both := moved[c.FromBytes]
			both[op] = c.IO
			moved[c.FromBytes] = both
		}
	}
	for _, from := range slices.Sorted(maps.Keys(labels)) {
		rd, wr := moved[from][0], moved[from][1]
		t.add(labels[from], rd.Count, rd.P50, rd.P95, wr.Count, wr.P50, wr.P95)
	}
	return t
}

// reads tells the first reads of entries from those after, which a cache in the drive may serve.
func reads(r *result.Result) Table {
	t := Table{Topic: "reads", Columns: head("", units.Count, "operations", units.Bytes, "bytes",
		units.Nanoseconds, "p50", "p95", "p99")}
	for i, k := range []result.ReadKind{r.FirstReads, r.ReReads} {
		t.some([]string{"first reads", "re-reads"}[i], k.Operations, k.Bytes, k.Latency.P50,
			k.Latency.P95, k.Latency.P99)
	}
	return t
}

// contexts is how long the KV of contexts takes to load from the slowest tier, beside how long it
// takes to compute it again: what a cache is for.
func contexts(r *result.Result) (t Table) {
	t.Topic = "time to load"
	t.Columns = head("", units.Bytes, "bytes", units.Nanoseconds, "typical", "slow (p5 rate)",
		"recomputed")
	if r.EntrySizes.Read.Count == 0 {
		return t
	}
	for _, c := range r.ContextLoad {
		t.add(fmt.Sprintf("%dk tokens", c.Tokens>>10), c.Bytes, c.TypicalNS, c.SlowNS,
			c.RecomputeNS)
	}
	return t
}

// loadingWins says which is faster, where that is so for all contexts; where it depends on the
// length, the table shows from which on.
func loadingWins(r *result.Result) string {
	verdicts := map[bool]int{}
	for _, c := range r.ContextLoad {
		if c.LoadingWins != nil {
			verdicts[*c.LoadingWins]++
		}
	}
	speed := number(r.Workload.PrefillRate)
	switch {
	case len(verdicts) != 1:
		return ""
	case verdicts[true] > 0:
		return "loading beats recomputing at " + speed + " tok/s"
	}
	return "recomputing at " + speed + " tok/s beats loading"
}
