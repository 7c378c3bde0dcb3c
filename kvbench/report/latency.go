package report

import (
	"fmt"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// distribution adds a row, unless all samples are zero. Percentiles with too few samples are
// unknown.
func (s *Section) distribution(name string, d result.Distribution) {
	if d.Max != nil && *d.Max > 0 {
		s.some(name, d.Count, d.Mean, d.P50, d.P95, d.P99, d.P999, d.Max)
	}
}

// latencies lists the latencies of entries. Rows below have first reads and re-reads (a cache in the
// drive may serve re-reads), the device time if the rest of the operation is more than 1 % of it, moves
// between tiers, the latency per 100 MiB, and for the slowest tier other tools' latency and the latency
// by size. Together they show whether the drive is slow or the entries are large. The sizes of a row
// differ by at most a factor of four. p99.9 needs ten thousand samples, so only long trials have it.
func latencies(r *result.Result) Section {
	s := Section{Title: "Latencies", Topic: "latency", Folded: true,
		Columns: columns("per entry", units.Count, "samples", units.Nanoseconds, "mean", "p50",
			"p95", "p99", "p99.9", "max")}
	// Each tier's reads and writes, fastest tier first.
	for n, t := range r.Tiers {
		l := r.Latency.Levels[t.Level]
		for i, o := range []result.OpLatency{l.Read, l.Write} {
			name := t.Level + directions[i]
			s.distribution(name, o.IO)
			if i == 0 && l.FirstRead.Count > 0 && l.ReRead.Count > 0 {
				s.distribution(name+", first reads", l.FirstRead)
				s.distribution(name+", re-reads", l.ReRead)
			}
			if o.IO.Count > 0 && (o.Device.Count != o.IO.Count ||
				100*units.OrZero(o.Host.Mean) > units.OrZero(o.IO.Mean)) {
				s.distribution(name+", device", o.Device)
			}
			s.distribution(name+", between tiers", o.Demotion)
			s.distribution(name+", per 100 MiB", o.Per100MiB)
			if n < len(r.Tiers)-1 { // lines are few
				continue
			}
			s.distribution(name+", I/O request", o.Request)
			for _, c := range o.BySize {
				size := ", ≥ " + bytes(c.FromBytes)
				if c.ToBytes != nil {
					size = ", " + bytes(c.FromBytes) + " – " + bytes(c.ToBytes)
				}
				if len(o.BySize) > 1 { // else equal to the latencies of all
					s.distribution(name+size, c.IO)
				}
			}
		}
	}
	return s
}

// partColumns are the columns of a table of parts of a time.
func partColumns(first string) []Column {
	return columns(first, units.Nanoseconds, "mean", units.Share, "share", units.Nanoseconds, "p50",
		"p95", "p99", "p99.9", "max")
}

// part adds a row for a part of the time of n requests, whose sum is ns of whole.
func (s *Section) part(name string, n, ns, whole int64, d result.Distribution) {
	s.add(name, float64(ns)/float64(n), units.Ratio(ns, whole), d.P50, d.P95, d.P99, d.P999, d.Max)
}

// requestTime splits the time of requests into parts. A part's mean is over all completed requests, so
// the means add up to the mean of the whole. Percentiles do not add up. It leaves out parts below 0.01 %
// of the time. Waiting is one part, and kinds of waiting above 1 % have rows of their own.
func requestTime(r *result.Result) (s Section) {
	n, l, sum := r.Requests.Completed, r.Latency.Request, r.Requests.Time
	if r.CompletionUnit == result.UnitOperation || n == 0 {
		return s
	}
	rest := sum.Rest
	release := sum.Release
	if !evicted(r) { // nothing to delete: the time of finding that out
		rest, release = rest+release, 0
	}
	s = Section{Title: "Request Time", Folded: true, Columns: partColumns("per request")}
	for _, part := range []struct {
		name  string
		ns    int64
		times result.Distribution
		least int64 // in 1/10000 of the time; with less it would be no digit of the sum
	}{{"end to end", sum.EndToEnd, l.EndToEnd, 1}, {"queue", sum.Queue, l.Queue, 1},
		{name: "looking up", ns: sum.Lookup, least: 1},
		{"context reads", sum.Context, l.Context, 1}, {"prefill writes", sum.Prefill, l.Prefill, 1},
		{"decode reads", sum.Decode, l.Decode, 1}, {"waiting", sum.Waits(), l.Wait, 1},
		{name: "waiting for capacity", ns: sum.Room, least: 100},
		{name: "waiting for the write limit", ns: sum.WriteLimit, least: 100},
		{name: "waiting for buffers", ns: sum.Buffers, least: 100},
		{name: "waiting for another's write", ns: sum.Pending, least: 100},
		{name: "making data", ns: sum.Data, least: 1},
		{name: "waiting for the GPU", ns: sum.GPUWait, least: 1},
		{name: "computing", ns: sum.Compute, least: 1},
		{"generation", sum.Generation, l.Generation, 1},
		{name: "deleting what was evicted", ns: release, least: 1},
		{"rest", rest, l.Rest, 1}} {
		if part.ns*10_000 > part.least*sum.EndToEnd {
			s.part(part.name, n, part.ns, sum.EndToEnd, part.times)
		}
	}
	return s
}

// contexts compares the time to load the KV cache of contexts from the slowest tier under the run's load
// with the time to compute it again.
func contexts(r *result.Result) (s Section) {
	if r.CompletionUnit == result.UnitOperation || len(r.Tiers) == 0 || r.FirstToken != nil {
		return s
	}
	for _, c := range r.ContextLoad {
		if c.TypicalNS != nil {
			s.add(fmt.Sprintf("%dk tokens", c.Tokens>>10), c.Bytes, c.TypicalNS, c.SlowNS,
				c.RecomputeNS)
		}
	}
	if s.Rows == nil {
		return s
	}
	s.Title, s.Topic = "Time To Load", "loading"
	s.Columns = columns("context", units.Bytes, "bytes", units.Nanoseconds,
		"at an entry's median rate", "at its p5 rate", "recomputed")
	last := r.Tiers[len(r.Tiers)-1]
	s.line("", "with %s I/O requests in flight", number(units.OrZero(last.Read.MeanInFlight)+
		units.OrZero(last.Write.MeanInFlight)))
	return s
}

// shownStalls is how many of the 16 longest stalls in the JSON are printed. The stalls of a device that
// hangs are alike.
const shownStalls = 3

// stalls lists calls that the storage completed late or not at all.
func stalls(r *result.Result) (s Section) {
	all := r.Stalls
	if all == nil {
		return s
	}
	s.Title, s.Topic = "Stalls", "stalls"
	s.line("", "%s took the storage %s and longer, the whole trial counted",
		units.Plural(all.Count, "request"), ns(all.AfterNS))
	for _, l := range all.Longest[:min(shownStalls, len(all.Longest))] {
		end, what := "completed", l.Operation
		if !l.Answered {
			end = "NOT completed"
		}
		if l.Bytes > 0 {
			what = fmt.Sprintf("%s of %s at offset %d", what, bytes(l.Bytes), l.Offset)
		}
		s.line("", "%s, %s: %s, %s", ns(l.LengthNS), end, what, l.Path)
	}
	return s
}
