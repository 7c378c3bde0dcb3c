package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tracing"
)

// WriteSummary writes the trial as a person reads it: what ran, what the storage did, for whom, at what cost, and what to
// doubt. Units are binary, "–" stands for unknown or for a percentile with too few samples. It fits in about 80 lines.
func WriteSummary(w io.Writer, r *result.Result) error {
	out := bufio.NewWriter(w)
	capture, err := captured(r)
	if err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	s := &summaryWriter{w: out, r: r, capture: capture}
	s.head()
	s.verdict()
	s.throughput()
	s.sizes()
	s.latency()
	s.bySize()
	s.reads()
	s.contexts()
	s.tiers()
	s.cache()
	s.blocks()
	s.validation()
	s.load()
	s.harness()
	s.witness()
	s.trace()
	s.doubts()
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// WriteStorageHealth writes the Python benchmark's assessment. It ignores entry size, so no report prints it unless asked.
func WriteStorageHealth(w io.Writer, r *result.Result) error {
	h := r.Summary.CacheStats.StorageHealth
	var b strings.Builder
	fmt.Fprintf(&b, "Storage health as the Python benchmark judges it (entry size ignored): %s, %d of %d passed\n",
		h.OverallStatus, h.PassedCount, h.TotalCount)
	for _, c := range h.Criteria {
		word := "fail"
		if c.Passed {
			word = "pass"
		}
		fmt.Fprintf(&b, "  %s  %-40s %s %s\n", word, c.Name, units.Number(c.Actual), c.Unit)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *summaryWriter) head() {
	r := s.r
	title := r.Benchmark
	if r.Option != nil {
		title += fmt.Sprintf(" (option %d)", *r.Option)
	}
	if r.Simulation != nil {
		title = "SIMULATED " + title
	}
	fmt.Fprintf(s.w, "%s, %s division, trial %d of %d, rank %d of %d: %s", title, r.Division, r.Trial+1, max(r.Count, 1), r.Rank,
		max(r.Ranks, 1), r.Status)
	if r.EndedBy != "" {
		fmt.Fprintf(s.w, " (ended by %s)", strings.ReplaceAll(r.EndedBy, "_", " "))
	}
	fmt.Fprintln(s.w)
	if r.Notice != "" {
		s.line("", "%s", r.Notice)
	}
	if r.Error != "" {
		s.line("error", "%s", r.Error)
	}
	s.simulated()
	s.autoscaler()
	if m := r.Model; m.RankBytesPerToken > 0 {
		s.line("model", "%s, %s per token on this rank, tensor parallel %d", nonEmpty(m.Name, m.Key), units.Bytes(float64(m.RankBytesPerToken)),
			max(m.TensorParallel, 1))
	}
	who := units.Plural(int64(r.Workload.Workers), "worker")
	if r.Workload.Users > 0 {
		who = units.Plural(int64(r.Workload.Users), "user") + ", " + who
	}
	s.line("load", "%s, seed %d", join(who, r.Workload.Arrival, r.Workload.Turns+" turns", "generation "+r.Workload.GenerationMode,
		"decode reads "+r.Workload.DecodeReads), r.Seed)
	virtual := ""
	if r.Simulation != nil {
		virtual = " of virtual time"
	}
	s.line("window", "%s%s of %s in all, warm-up %s, drain %s", units.Duration(float64(r.WindowNS)), virtual, units.Duration(float64(r.ElapsedNS)),
		units.Duration(float64(r.WarmupNS)), units.Duration(float64(r.DrainNS)))
	io := fmt.Sprintf("%s I/O, %s chunks, depth %d, write device time is %s", r.IO.Mode, units.Bytes(float64(r.IO.ChunkBytes)), r.IO.Depth,
		r.IO.WriteDevice)
	if r.IO.MaxConcurrentAllocs > 0 {
		io += fmt.Sprintf(", %d writes at a time", r.IO.MaxConcurrentAllocs)
	}
	s.line("storage", "%s", nonEmpty(r.IO.CacheDir, "no directory"))
	s.line("", "%s", io)
	if n := len(r.DiffersFromClosed); n > 0 && r.Option != nil {
		names := make([]string, 0, n)
		for _, d := range r.DiffersFromClosed {
			names = append(names, fmt.Sprintf("%s %v (closed %v)", d.Name, d.Value, d.Closed))
		}
		const most = 4
		if n > most {
			names = append(names[:most], fmt.Sprintf("and %d more", n-most))
		}
		s.line("differs", "%s", strings.Join(names, ", "))
	}
	if p := r.Precondition; p != nil {
		var sum float64
		for _, v := range p.LastRates {
			sum += v
		}
		s.line("precond.", "%s written in %s, the last rounds at %s on average, %s apart", units.Bytes(float64(p.Bytes)),
			units.Duration(float64(p.DurationNS)), units.Rate(units.Ratio(sum, float64(len(p.LastRates)))), units.Percent(&p.Spread))
	}
	s.replay()
	if in := r.Input; in != nil {
		tokens := ""
		if in.Tokenizer != "" {
			tokens = ", tokens by " + in.Tokenizer
		}
		skipped := ""
		if in.Skipped > 0 {
			skipped = fmt.Sprintf(", %s before the start of the replay", units.Count(in.Skipped))
		}
		s.line("input", "%s, %s failed, %s malformed%s%s", units.Plural(in.Rows, "row"), units.Count(in.Failed), units.Count(in.Malformed), skipped, tokens)
	}
}

func (s *summaryWriter) verdict() {
	v := s.r.Harness.Verdict
	s.line("verdict", "%s: %s", v.Kind, v.Reason)
}

func (s *summaryWriter) throughput() {
	r := s.r
	fmt.Fprintln(s.w)
	if r.CompletionUnit == result.UnitOperation {
		s.line("throughput", "%s", units.Plural(r.Requests.Operations, "operation"))
	} else {
		s.line("throughput", "%s, %s requests/s, %s tok/s", units.Plural(r.Requests.Completed, "request"),
			units.NumberOf(r.Summary.RequestsPerSecond), units.NumberOf(r.Summary.AvgThroughput))
		s.line("", "%s tok/s of storage time (tokens ÷ summed I/O time of parallel requests, not a rate of the device)",
			units.NumberOf(r.Summary.StorageThroughput))
	}
	if r.Ceiling != nil {
		s.line("", "%s of what plain sequential I/O moves (read %s, write %s)", units.Percent(r.CeilingRatio), units.Rate(&r.Ceiling.Read),
			units.Rate(&r.Ceiling.Write))
	}
}

func (s *summaryWriter) sizes() {
	rows := [][]string{{"", "entries", "mean", "p50", "p95", "largest"}}
	for _, k := range []struct {
		name string
		d    result.Distribution
	}{{"written", s.r.EntrySizes.Write}, {"read", s.r.EntrySizes.Read}} {
		if k.d.Count > 0 {
			rows = append(rows, []string{k.name, units.Count(k.d.Count), units.Bytes(*k.d.Mean), units.BytesOf(k.d.P50), units.BytesOf(k.d.P95), units.BytesOf(k.d.Max)})
		}
	}
	s.table("entry size", rows)
}

func (s *summaryWriter) tiers() {
	fmt.Fprintln(s.w)
	rows := [][]string{{"", "used", "of", "entries", "read", "read rate", "written", "write rate", "demoted in", "evicted"}}
	for _, t := range s.r.Tiers {
		capacity := "unlimited"
		if t.CapacityBytes != nil {
			capacity = units.Bytes(float64(*t.CapacityBytes))
		}
		rows = append(rows, []string{t.Level, units.Bytes(float64(t.UsedBytes)), capacity, units.Count(t.Entries), units.Bytes(float64(t.Read.Bytes)),
			units.Rate(t.Read.BytesPerSecond), units.Bytes(float64(t.Write.Bytes)), units.Rate(t.Write.BytesPerSecond), units.Count(t.DemotedIn.Entries),
			units.Count(t.Evicted.Entries)})
	}
	s.table("tiers", rows)
}

func (s *summaryWriter) cache() {
	l := s.r.Lookups
	if l.Hits+l.Misses+l.NotYetWritten == 0 {
		return
	}
	line := fmt.Sprintf("%s hits, %s misses of lookups: hit rate %s", units.Count(l.Hits), units.Count(l.Misses), units.Percent(l.HitRate))
	var kinds []string
	for _, k := range result.LookupKinds {
		if n := l.ByKind[k]; n.Hits+n.Misses > 0 {
			kinds = append(kinds, fmt.Sprintf("%s %s", strings.ReplaceAll(k, "_", "-"), units.Percent(n.HitRate)))
		}
	}
	if len(kinds) > 0 {
		line += " (" + strings.Join(kinds, ", ") + ")"
	}
	if l.NotYetWritten > 0 {
		line += fmt.Sprintf("; %s asked before they were written", units.Count(l.NotYetWritten))
	}
	s.line("cache", "%s", line)
}

func (s *summaryWriter) load() {
	rows := [][]string{{"", "offered", "served", "share", "in flight", "queued", "oldest queued", "e2e p95", "SLA", "compliance"}}
	for _, c := range append(slices.Clone(result.Classes[:]), "total") {
		o, ok := s.r.Load[c]
		if !ok || (c != "total" && o.Offered+o.Completed+o.InFlight+o.Queued == 0) {
			continue
		}
		row := []string{c, units.Count(o.Offered), units.Count(o.Completed), units.Percent(o.ServedRatio), units.Count(o.InFlight), units.Count(o.Queued),
			units.Seconds(o.OldestQueuedAgeS)}
		lat, sla := s.r.Latency.Request.EndToEnd, (*result.SLA)(nil)
		if c != "total" {
			lat, sla = s.r.Latency.Request.ByClass[c], s.r.Summary.QoSMetrics[c].SLA
		}
		p95 := units.DurationOf(lat.P95)
		if o.Censored && lat.P95 != nil { // the slowest are still waiting
			p95 = "≥ " + p95
		}
		row = append(row, p95)
		if sla != nil {
			row = append(row, "p95 ≤ "+units.Duration(sla.TargetP95MS*1e6), units.Percent(sla.Compliance))
		} else {
			row = append(row, "", "")
		}
		rows = append(rows, row)
	}
	t := s.r.Load["total"]
	if s.r.CompletionUnit == result.UnitOperation || t.Completed+t.InFlight+t.Queued == 0 {
		return
	}
	s.table("served", rows)
	s.line("", "%s of the offered load was served; %s were offered for writing", units.Percent(t.ServedRatio), units.Bytes(float64(t.OfferedBytes)))
}

func (s *summaryWriter) harness() {
	h := s.r.Harness
	fmt.Fprintln(s.w)
	rss := "peak memory unknown"
	if h.PeakRSSBytes != nil {
		rss = "peak memory " + units.Bytes(float64(*h.PeakRSSBytes))
	}
	s.line("harness", "%s CPU (%s of %s cores), %s ns per byte, %s, %s (%s paused)", units.Duration(h.CPUSeconds*1e9),
		units.Percent(h.Verdict.CPUShare), units.Number(s.r.Limits.Cores), units.NumberOf(h.CPUNSPerByte), rss, units.Plural(h.GCCount, "collection"),
		units.Duration(float64(h.GCPauseNS)))
	s.line("", "workers idle %s, host and buffer wait %s of busy time; %s cut off at the end", units.Percent(h.Verdict.IdleShare),
		units.Percent(h.Verdict.HostWaitShare), units.Plural(s.r.Requests.CancelledOperations, "operation"))
}

func (s *summaryWriter) witness() {
	w := s.r.DeviceWitness
	if w.ReadBytes == nil {
		s.line("kernel", "no byte counts: %s", nonEmpty(w.Reason, "unknown"))
		return
	}
	s.line("kernel", "%s read %s (application %s, ratio %s), wrote %s (application %s, ratio %s), busy %s", w.Device,
		units.BytesOf(w.ReadBytes), units.Bytes(float64(w.AppReadBytes)), units.NumberOf(w.ReadRatio), units.BytesOf(w.WriteBytes),
		units.Bytes(float64(w.AppWriteBytes)), units.NumberOf(w.WriteRatio), units.Percent(w.BusyShare))
}

func (s *summaryWriter) doubts() {
	const most = 12
	warnings := s.r.Warnings
	if tr := s.capture; tr != nil && tr.Capture.Status == tracing.StatusTraced { // its notes stand beside its numbers
		warnings = slices.DeleteFunc(slices.Clone(warnings), func(w string) bool { return slices.Contains(tr.Capture.Warnings, w) })
	}
	for i, w := range warnings {
		if i == most {
			s.line("", "and %d more warnings in the JSON", len(warnings)-most)
			break
		}
		s.line("warning", "%s", w)
	}
	for i, e := range s.r.Errors {
		if i == 5 {
			break
		}
		s.line("failed", "%s × %s %s: %s", units.Count(e.Count), e.Tier, e.Operation, e.Errno)
	}
	if i := slices.IndexFunc(s.r.ErrorSamples, func(e result.ErrorSample) bool { return e.Message != "" }); i >= 0 {
		e := s.r.ErrorSamples[i]
		s.line("", "first: %s: %s", e.Where(), e.Message)
	}
}
