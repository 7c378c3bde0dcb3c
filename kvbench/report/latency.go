package report

import (
	"fmt"
	"maps"
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// distributions is a table with a row for each distribution that has samples. p99.9 needs ten
// thousand of them: it is unknown in most trials, and is for long ones.
func distributions(topic, what string) *Table {
	return &Table{Topic: topic, Columns: head(what, units.Count, "samples",
		units.Nanoseconds, "mean", "p50", "p95", "p99", "p99.9", "max")}
}

// distribution adds a row, unless all samples are zero. Percentiles with too few samples are
// unknown.
func (t *Table) distribution(name string, d result.Distribution) {
	if d.Max != nil && *d.Max > 0 {
		t.some(name, d.Count, d.Mean, d.P50, d.P95, d.P99, d.P999, d.Max)
	}
}

// latencies lists the latencies of entries and of requests. Below them stand first reads and
// re-reads, which a cache in the drive may serve, an operation's device time where the rest is more
// than a hundredth of it, moves between tiers and the latency per 100 MiB: together they show
// whether the drive is slow or the entries are large.
func latencies(r *result.Result) []Table {
	entry := distributions("latency", "per entry")
	// Each tier's reads and writes, fastest tier first.
	for n, t := range r.Tiers {
		l := r.Latency.Levels[t.Level]
		for i, o := range []result.OpLatency{l.Read, l.Write} {
			name := t.Level + directions[i]
			// Parts are indented below their operation, unless there is none of it.
			part := "  "
			if o.IO.Count == 0 { // moves between tiers only
				part = name + " "
			}
			entry.distribution(name, o.IO)
			if i == 0 && l.FirstRead.Count > 0 && l.ReRead.Count > 0 {
				entry.distribution(part+"first reads", l.FirstRead)
				entry.distribution(part+"re-reads", l.ReRead)
			}
			if o.IO.Count > 0 && (o.Device.Count != o.IO.Count ||
				100*units.OrZero(o.Host.Mean) > units.OrZero(o.IO.Mean)) {
				entry.distribution(part+"device", o.Device)
			}
			entry.distribution(part+"between tiers", o.Demotion)
			entry.distribution(part+"per 100 MiB", o.Per100MiB)
			// Other tools' latency. Of the slowest tier only: lines are few.
			if n == len(r.Tiers)-1 {
				entry.distribution(part+"I/O request", o.Request)
			}
		}
	}
	return []Table{*entry, requestTime(r)}
}

// requestTime splits the time of requests. All parts are of all completed requests, so that their
// means add up to the mean of the whole; percentiles do not add up. Parts below a ten-thousandth of
// the time are left out, and kinds of waiting below a hundredth.
func requestTime(r *result.Result) (t Table) {
	n, l, sum := r.Requests.Completed, r.Latency.Request, r.Requests.Time
	if r.CompletionUnit == result.UnitOperation || n == 0 {
		return t
	}
	t.Columns = head("per request, "+count(n)+" in all", units.Nanoseconds, "mean", units.Share,
		"share", units.Nanoseconds, "p50", "p95", "p99", "p99.9", "max")
	add := func(name string, ns int64, d result.Distribution) {
		if ns*10_000 > sum.EndToEnd { // else it would be no digit of the sum
			t.add(name, float64(ns)/float64(n), units.Ratio(ns, sum.EndToEnd), d.P50, d.P95, d.P99,
				d.P999, d.Max)
		}
	}
	add("end to end", sum.EndToEnd, l.EndToEnd)
	add("  queue", sum.Queue, l.Queue)
	add("  looking up", sum.Lookup, result.Distribution{})
	add("  context reads", sum.Context, l.Context)
	add("  prefill writes", sum.Prefill, l.Prefill)
	add("  decode reads", sum.Decode, l.Decode)
	add("  waiting", sum.Waits(), l.Wait)
	for _, w := range []struct {
		name string
		ns   int64
	}{{"for room", sum.Room}, {"for the write limit", sum.WriteLimit}, {"for buffers", sum.Buffers},
		{"for another's write", sum.Pending}} {
		if w.ns*100 >= sum.EndToEnd {
			add("    "+w.name, w.ns, result.Distribution{})
		}
	}
	add("  making data", sum.Data, result.Distribution{})
	add("  waiting for the GPU", sum.GPUWait, result.Distribution{})
	add("  computing", sum.Compute, result.Distribution{})
	add("  generation", sum.Generation, l.Generation)
	rest := sum.Rest
	if evicted(r) {
		add("  deleting what was evicted", sum.Release, result.Distribution{})
	} else { // nothing to delete: the time of finding that out
		rest += sum.Release
	}
	add("  rest", rest, l.Rest)
	return t
}

// bySize shows the slowest tier only: the trial is about it, and lines are few. Entries of a class
// differ by at most four, so that their latencies can be read without scaling them.
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
	if len(labels) < 2 {
		return t // equal to the latencies of all
	}
	for _, from := range slices.Sorted(maps.Keys(labels)) {
		rd, wr := moved[from][0], moved[from][1]
		t.add(labels[from], rd.Count, rd.P50, rd.P95, wr.Count, wr.P50, wr.P95)
	}
	return t
}

// contexts is the time of loading the KV of contexts from the slowest tier under the run's load,
// compared with the time of computing it again.
func contexts(r *result.Result) (t Table) {
	if r.CompletionUnit == result.UnitOperation || len(r.Tiers) == 0 || r.FirstToken != nil {
		return t
	}
	last := r.Tiers[len(r.Tiers)-1]
	flying := units.OrZero(last.Read.MeanInFlight) + units.OrZero(last.Write.MeanInFlight)
	t.Topic = "time to load"
	t.Columns = head("with "+number(flying)+" I/O requests in flight", units.Bytes, "bytes",
		units.Nanoseconds, "at an entry's median rate", "at its p5 rate", "recomputed")
	for _, c := range r.ContextLoad {
		if c.TypicalNS == nil {
			continue
		}
		t.add(fmt.Sprintf("%dk tokens", c.Tokens>>10), c.Bytes, c.TypicalNS, c.SlowNS,
			c.RecomputeNS)
	}
	return t
}

// shownStalls is how many of the 16 in the JSON are printed, the longest: a hanging device leaves
// as many as were in flight, which are alike.
const shownStalls = 3

// stalls are calls that the storage answered late, or not at all. They stand above the warnings,
// because a latency beyond them is a fault's, and below the numbers, which include them.
func (s *summary) stalls() {
	all := s.Stalls
	if all == nil {
		return
	}
	of := func(l result.Stall) string {
		if l.Bytes > 0 {
			return fmt.Sprintf("%s of %s at offset %d", l.Operation, bytes(l.Bytes), l.Offset)
		}
		return l.Operation
	}
	s.line("stalls", "%s took the storage %s and longer, the whole trial counted",
		units.Plural(all.Count, "request"), ns(all.AfterNS))
	for _, l := range all.Longest[:min(shownStalls, len(all.Longest))] {
		end := "answered"
		if !l.Answered {
			end = "NOT answered"
		}
		s.line("", "%s, %s: %s, %s", ns(l.LengthNS), end, of(l), l.Path)
	}
}

// engine is the I/O method for files. The only method of earlier versions is not printed.
func engine(io result.IO) string {
	if io.Engine == "uring" {
		return " by io_uring"
	}
	return ""
}
