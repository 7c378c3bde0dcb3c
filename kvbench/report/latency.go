package report

import (
	"cmp"
	"fmt"
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// eachOp calls f for what to show, in order: each existing tier's reads and writes.
func (s *summaryWriter) eachOp(f func(name string, l result.LevelLatency, o result.OpLatency)) {
	for _, t := range s.r.Tiers {
		lat := s.r.Latency.Levels[t.Level]
		f(t.Level+" read", lat, lat.Read)
		f(t.Level+" write", lat, lat.Write)
	}
}

func distributionRow(name string, d result.Distribution) []string {
	mean := units.Unknown
	if d.Mean != nil {
		mean = units.Duration(*d.Mean)
	}
	return []string{name, units.Count(d.Count), mean, units.DurationOf(d.P50), units.DurationOf(d.P95), units.DurationOf(d.P99), units.DurationOf(d.P999), units.DurationOf(d.Max)}
}

func (s *summaryWriter) latency() {
	fmt.Fprintln(s.w)
	rows := [][]string{{"per entry", "samples", "mean", "p50", "p95", "p99", "p99.9", "max"}}
	add := func(name string, d result.Distribution) {
		if d.Count > 0 {
			rows = append(rows, distributionRow(name, d))
		}
	}
	s.eachOp(func(name string, _ result.LevelLatency, o result.OpLatency) {
		part := "  "
		if o.IO.Count == 0 { // demotions only
			part = name + " "
		}
		add(name, o.IO)
		add(part+"device", o.Device)
		add(part+"demotion", o.Demotion)
		add(part+"per 100 MiB", o.Per100MiB)
	})
	l := s.r.Latency
	add("prefix read", l.PrefixRead)
	add("write admission", l.WriteAdmission)
	add("space wait", l.SpaceWait)
	add("pending wait", l.PendingWait)
	s.table("latency", rows)
	rows = [][]string{{"per request", "samples", "mean", "p50", "p95", "p99", "p99.9", "max"}}
	add("end to end", l.Request.EndToEnd)
	add("queue", l.Request.Queue)
	add("storage I/O", l.Request.Storage)
	add("prefill", l.Request.Prefill)
	add("decode", l.Request.Decode)
	s.table("", rows)
	rows = [][]string{{"effective rate of one entry", "samples", "p5", "p50"}}
	s.eachOp(func(name string, _ result.LevelLatency, o result.OpLatency) {
		if o.Rate.Count > 0 {
			rows = append(rows, []string{name, units.Count(o.Rate.Count), units.RateOf(o.Rate.P5), units.RateOf(o.Rate.P50)})
		}
	})
	s.table("", rows)
}

// bySize shows the slowest tier only: it is what the trial is about, and lines are few.
func (s *summaryWriter) bySize() {
	if len(s.r.Tiers) == 0 {
		return
	}
	name := s.r.Tiers[len(s.r.Tiers)-1].Level
	lat := s.r.Latency.Levels[name]
	// A size class is listed by an operation that moved entries of it: by reads, by writes or by both.
	reads, writes := make(map[int64]result.Distribution), make(map[int64]result.Distribution)
	var classes []result.SizeLatency
	for _, b := range lat.Read.BySize {
		reads[b.FromBytes] = b.IO
		classes = append(classes, b)
	}
	for _, b := range lat.Write.BySize {
		writes[b.FromBytes] = b.IO
		if _, known := reads[b.FromBytes]; !known {
			classes = append(classes, b)
		}
	}
	slices.SortFunc(classes, func(a, b result.SizeLatency) int { return cmp.Compare(a.FromBytes, b.FromBytes) })
	rows := [][]string{{name + " by size", "reads", "p50", "p95", "writes", "p50", "p95"}}
	for _, c := range classes {
		label := "≥ " + units.Bytes(float64(c.FromBytes))
		if c.ToBytes != nil {
			label = units.Bytes(float64(c.FromBytes)) + " – " + units.Bytes(float64(*c.ToBytes))
		}
		rd, wr := reads[c.FromBytes], writes[c.FromBytes]
		rows = append(rows, []string{label, units.Count(rd.Count), units.DurationOf(rd.P50), units.DurationOf(rd.P95), units.Count(wr.Count), units.DurationOf(wr.P50),
			units.DurationOf(wr.P95)})
	}
	s.table("", rows)
}

func (s *summaryWriter) reads() {
	rows := [][]string{{"", "operations", "bytes", "p50", "p95", "p99"}}
	for _, k := range []struct {
		name string
		k    result.ReadKind
	}{{"first reads", s.r.FirstReads}, {"re-reads", s.r.ReReads}} {
		if k.k.Operations > 0 {
			l := k.k.Latency
			rows = append(rows, []string{k.name, units.Count(k.k.Operations), units.Bytes(float64(k.k.Bytes)), units.DurationOf(l.P50), units.DurationOf(l.P95), units.DurationOf(l.P99)})
		}
	}
	s.table("reads", rows)
}

func (s *summaryWriter) contexts() {
	rows := [][]string{{"", "bytes", "typical", "slow (p5 rate)", "recomputed"}}
	wins, losses := 0, 0
	for _, c := range s.r.ContextLoad {
		rows = append(rows, []string{fmt.Sprintf("%dk tokens", c.Tokens>>10), units.Bytes(float64(c.Bytes)), units.DurationOf(c.TypicalNS), units.DurationOf(c.SlowNS),
			units.DurationOf(c.RecomputeNS)})
		if c.LoadingWins != nil && *c.LoadingWins {
			wins++
		} else if c.LoadingWins != nil {
			losses++
		}
	}
	if s.r.EntrySizes.Read.Count > 0 {
		s.table("time to load", rows)
	}
	switch {
	case wins > 0 && losses == 0:
		s.line("", "loading beats recomputing at %s tok/s", units.Number(s.r.Workload.PrefillRate))
	case losses > 0 && wins == 0:
		s.line("", "recomputing at %s tok/s beats loading", units.Number(s.r.Workload.PrefillRate))
	}
}
