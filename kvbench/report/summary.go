package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tracing"
)

// WriteSummary writes the trial as a person reads it: what ran, what the storage did, for whom, at
// what cost, and what to doubt. Units are binary, "–" stands for unknown or for a percentile with
// too few samples. It fits in about 80 lines.
func WriteSummary(w io.Writer, r *result.Result) error {
	capture, err := captured(r)
	if err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	out := bufio.NewWriter(w)
	s := &summary{Writer: out, Result: r, capture: capture}
	// What ran, and what bounded it: before any number, because it says which of them to believe.
	s.head()
	s.line("verdict", "%s: %s", r.Harness.Verdict.Kind, r.Harness.Verdict.Reason)
	s.gap()
	s.throughput()
	sizes(r).write(s)
	s.gap()
	// How long things took, from a single entry to a context.
	for _, t := range latencies(r) {
		t.write(s)
	}
	bySize(r).write(s)
	reads(r).write(s)
	contexts(r).write(s)
	s.put("", loadingWins(r))
	s.gap()
	// What the cache did, and for whom.
	tiers(r).write(s)
	s.cache()
	s.blocks()
	s.validation()
	s.load()
	s.gap()
	// What it cost, what the kernel says of the same window, and what to doubt.
	s.harness()
	s.witness()
	if capture != nil {
		s.gap()
		_ = capture.WriteText(s, fioInput(r).Application()) // the writer keeps the error for Flush
	}
	s.doubts()
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// LogLines is the result in at most nine lines for a benchmark's log, which the testing package
// cuts after ten without -v. No line looks like the `key: value` of benchmark configuration, or
// benchstat would take it for one and not compare the runs.
func LogLines(r *result.Result) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if n := r.Notice; n != "" {
		add("%s", n)
	}
	if s := r.Simulation; s != nil && s.SustainedUsers != nil {
		add("it would sustain %.0f of %d users, the queue grew by %s requests/s", *s.SustainedUsers,
			r.Workload.Users, number(s.QueueGrowth))
	}
	if s := r.Summary.AutoscalingSummary; s != nil {
		add("autoscaler (%s) sustained %d users at up to %s, from %d to at most %d users in %d "+
			"rounds", s.Mode, s.SustainedUsers, rate(s.PeakRate), s.InitialUsers, s.PeakUsers,
			s.Rounds)
	}
	if r.Status != result.StatusComplete {
		add("the trial is %s (ended by %s), because %s", r.Status, r.EndedBy,
			cmp.Or(r.Error, "its window did not end in order"))
	}
	for _, t := range r.Tiers {
		if t.Level == "storage" {
			add("storage moved %s read and %s written in %s", bytes(t.Read.Bytes),
				bytes(t.Write.Bytes), ns(r.WindowNS))
		}
	}
	if v := r.Harness.Verdict; v.Kind != "" {
		add("%s, because %s", v.Kind, v.Reason)
	}
	if tr, _ := captured(r); tr != nil && tr.Capture.Status != tracing.StatusTraced {
		why := tr.Capture.Reason
		if len(tr.Capture.Needs) > 0 {
			why += "; needed: " + strings.Join(tr.Capture.Needs, "; ")
		}
		add("not traced: %s", why)
	}
	if n := len(r.Warnings); n > 0 {
		add("%s in the summary, the first says %s", units.Plural(n, "warning"), r.Warnings[0])
	}
	return lines
}

// summary writes lines with a topic in the margin. Its methods write one section each, and nothing
// where the trial has no such part, so that a short trial has a short summary.
type summary struct {
	*bufio.Writer
	*result.Result
	capture *tracing.Trace // what the kernel saw, nil when it was not asked
}

// line writes one line; an empty topic continues the one above. No line is wrapped: a terminal does
// that better, and a golden file shows what changed.
func (s *summary) line(topic, format string, args ...any) {
	s.put(topic, fmt.Sprintf(format, args...))
}

// put writes a text, unless it is empty.
func (s *summary) put(topic, text string) {
	if text != "" {
		fmt.Fprintf(s, "%-11s %s\n", topic, text)
	}
}

// gap parts groups of sections: what ran, how long it took, what the cache did, at what cost.
func (s *summary) gap() { fmt.Fprintln(s) }

// head says what ran. Whoever compares two summaries looks here first, so that what makes results
// incomparable (I/O mode, write device time, what differs from the closed division) stands in it.
func (s *summary) head() {
	s.title()
	s.put("", s.Notice)
	s.put("error", s.Error)
	s.simulated()
	s.autoscaler()
	if m := s.Model; m.RankBytesPerToken > 0 {
		s.line("model", "%s, %s per token on this rank, tensor parallel %d", cmp.Or(m.Name, m.Key),
			bytes(m.RankBytesPerToken), max(m.TensorParallel, 1))
	}
	s.workload()
	// The window is what rates are of; all is what a person waited for.
	virtual := ""
	if s.Simulation != nil {
		virtual = " of virtual time"
	}
	s.line("window", "%s%s of %s in all, warm-up %s, drain %s", ns(s.WindowNS), virtual,
		ns(s.ElapsedNS), ns(s.WarmupNS), ns(s.DrainNS))
	s.put("storage", cmp.Or(s.IO.CacheDir, "no directory"))
	io := fmt.Sprintf("%s I/O, %s chunks, depth %d, write device time is %s", s.IO.Mode,
		bytes(s.IO.ChunkBytes), s.IO.Depth, s.IO.WriteDevice)
	if s.IO.MaxConcurrentAllocs > 0 {
		io += fmt.Sprintf(", %d writes at a time", s.IO.MaxConcurrentAllocs)
	}
	s.put("", io)
	s.differs()
	if p := s.Precondition; p != nil {
		var sum float64
		for _, v := range p.LastRates {
			sum += v
		}
		s.line("precond.", "%s written in %s, the last rounds at %s on average, %s apart",
			bytes(p.Bytes), ns(p.DurationNS), rate(units.Ratio(sum, len(p.LastRates))),
			units.Share.Text(p.Spread))
	}
	s.replay()
	s.input()
}

// title says in one line which trial it was and whether it counts. A simulated one is marked in its
// first word, because nobody reads further to find out.
func (s *summary) title() {
	title := s.Benchmark
	if s.Option != nil {
		title += fmt.Sprintf(" (option %d)", *s.Option)
	}
	if s.Simulation != nil {
		title = "SIMULATED " + title
	}
	ended := ""
	if s.EndedBy != "" {
		ended = fmt.Sprintf(" (ended by %s)", strings.ReplaceAll(s.EndedBy, "_", " "))
	}
	fmt.Fprintf(s, "%s, %s division, trial %d of %d, rank %d of %d: %s%s\n", title, s.Division,
		s.Trial+1, max(s.Count, 1), s.Rank, max(s.Ranks, 1), s.Status, ended)
}

// workload says who made the load and how. A benchmark without requests has no arrival and no
// turns, and then their words are left out.
func (s *summary) workload() {
	w := s.Workload
	parts := []string{}
	add := func(text, value string) {
		if value != "" {
			parts = append(parts, text)
		}
	}
	if w.Users > 0 {
		add(units.Plural(w.Users, "user"), "users")
	}
	add(units.Plural(w.Workers, "worker"), "workers")
	add(w.Arrival, w.Arrival)
	add(w.Turns+" turns", w.Turns)
	add("generation "+w.GenerationMode, w.GenerationMode)
	add("decode reads "+w.DecodeReads, w.DecodeReads)
	s.line("load", "%s, seed %d", strings.Join(parts, ", "), s.Seed)
}

// differs lists what keeps a run of an option from the closed division. Other benchmarks have no
// closed form to differ from.
func (s *summary) differs() {
	const most = 4
	if s.Option == nil || len(s.DiffersFromClosed) == 0 {
		return
	}
	var names []string
	for i, d := range s.DiffersFromClosed {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(s.DiffersFromClosed)-most))
			break
		}
		names = append(names, fmt.Sprintf("%s %v (closed %v)", d.Name, d.Value, d.Closed))
	}
	s.put("differs", strings.Join(names, ", "))
}

// input is what the reader of a trace met. Malformed rows are told even when there are none.
func (s *summary) input() {
	in := s.Input
	if in == nil {
		return
	}
	line := fmt.Sprintf("%s, %s failed, %s malformed", units.Plural(in.Rows, "row"),
		count(in.Failed), count(in.Malformed))
	if in.Skipped > 0 {
		line += fmt.Sprintf(", %s before the start of the replay", count(in.Skipped))
	}
	if in.Tokenizer != "" {
		line += ", tokens by " + in.Tokenizer
	}
	s.put("input", line)
}

// throughput is what was completed in the window, in the unit of the benchmark, and what share of
// plain sequential I/O that is, where a StorageCeiling ran before in the same process.
//
// Tokens per second of storage time is a figure of the Python
// benchmark: it adds up the times of parallel requests and must not be read as a rate of the
// device.
func (s *summary) throughput() {
	if s.CompletionUnit == result.UnitOperation {
		s.put("throughput", units.Plural(s.Requests.Operations, "operation"))
	} else {
		s.line("throughput", "%s, %s requests/s, %s tok/s",
			units.Plural(s.Requests.Completed, "request"), number(s.Summary.RequestsPerSecond),
			number(s.Summary.AvgThroughput))
		s.line("", "%s tok/s of storage time (tokens ÷ summed I/O time of parallel requests, not "+
			"a rate of the device)", number(s.Summary.StorageThroughput))
	}
	if c := s.Ceiling; c != nil {
		s.line("", "%s of what plain sequential I/O moves (read %s, write %s)",
			percent(s.CeilingRatio), rate(c.Read), rate(c.Write))
	}
}

// sizes are those of the entries that were moved: latencies per entry mean nothing without them.
func sizes(r *result.Result) Table {
	t := Table{Topic: "entry size",
		Columns: head("", units.Count, "entries", units.Bytes, "mean", "p50", "p95", "largest")}
	add := func(name string, d result.Distribution) {
		if d.Count > 0 {
			t.add(name, d.Count, d.Mean, d.P50, d.P95, d.Max)
		}
	}
	add("written", r.EntrySizes.Write)
	add("read", r.EntrySizes.Read)
	return t
}

// tiers are what each level holds and moved, demotions among the bytes: they load a level as any
// other operation does.
func tiers(r *result.Result) Table {
	t := Table{Topic: "tiers",
		Columns: head("", units.Bytes, "used", "of", units.Count, "entries", units.Bytes, "read",
			units.BytesPerSec, "read rate", units.Bytes, "written", units.BytesPerSec, "write rate",
			units.Count, "demoted in", "evicted")}
	for _, l := range r.Tiers {
		var capacity any = "unlimited"
		if l.CapacityBytes != nil {
			capacity = l.CapacityBytes
		}
		t.add(l.Level, l.UsedBytes, capacity, l.Entries, l.Read.Bytes, l.Read.BytesPerSecond,
			l.Write.Bytes, l.Write.BytesPerSecond, l.DemotedIn.Entries, l.Evicted.Entries)
	}
	return t
}

// cache is how often what was looked for was there, by the kind of the lookup. Requests that
// overtook the turn before them are told apart: no cache could have had their history.
func (s *summary) cache() {
	l := s.Lookups
	if l.Hits+l.Misses+l.NotYetWritten == 0 {
		return
	}
	line := fmt.Sprintf("%s hits, %s misses of lookups: hit rate %s", count(l.Hits),
		count(l.Misses), percent(l.HitRate))
	var kinds []string
	for _, k := range result.LookupKinds {
		if n := l.ByKind[k]; n.Hits+n.Misses > 0 {
			kinds = append(kinds, strings.ReplaceAll(k, "_", "-")+" "+percent(n.HitRate))
		}
	}
	if len(kinds) > 0 {
		line += " (" + strings.Join(kinds, ", ") + ")"
	}
	if l.NotYetWritten > 0 {
		line += fmt.Sprintf("; %s asked before they were written", count(l.NotYetWritten))
	}
	s.put("cache", line)
}

// load is what was offered and what became of it, by class and in total. A p95 is marked as a lower
// bound where the slowest requests were still waiting at the end; a class without a target has no
// compliance.
func load(r *result.Result) Table {
	t := Table{Topic: "served",
		Columns: head("", units.Count, "offered", "served", units.Share, "share",
			units.Count, "in flight", "queued", units.Seconds, "oldest queued",
			units.Nanoseconds, "e2e p95", units.Number, "SLA", units.Share, "compliance")}
	total := r.Load["total"]
	if r.CompletionUnit == result.UnitOperation ||
		total.Completed+total.InFlight+total.Queued == 0 {
		return t
	}
	add := func(name string, o result.ClassOutcome, d result.Distribution, sla *result.SLA) {
		var p95, target, compliance any = d.P95, "", ""
		if o.Censored && d.P95 != nil { // the slowest are still waiting
			p95 = "≥ " + ns(d.P95)
		}
		if sla != nil {
			target, compliance = "p95 ≤ "+units.Milliseconds.Text(sla.TargetP95MS),
				percent(sla.Compliance)
		}
		t.add(name, o.Offered, o.Completed, percent(o.ServedRatio), o.InFlight, o.Queued,
			o.OldestQueuedAgeS, p95, target, compliance)
	}
	for _, c := range result.Classes {
		if o, ok := r.Load[c]; ok && o.Offered+o.Completed+o.InFlight+o.Queued > 0 {
			add(c, o, r.Latency.Request.ByClass[c], r.Summary.QoSMetrics[c].SLA)
		}
	}
	add("total", total, r.Latency.Request.EndToEnd, nil)
	return t
}

// load writes the table and how much of the offered load was served, the number to look at when a
// trial is oversubscribed.
func (s *summary) load() {
	t := load(s.Result)
	if len(t.Rows) == 0 {
		return
	}
	t.write(s)
	total := s.Load["total"]
	s.line("", "%s of the offered load was served; %s were offered for writing",
		percent(total.ServedRatio), bytes(total.OfferedBytes))
}

// harness is what measuring cost, and the shares behind the verdict. A share that could not be
// measured is unknown and has decided nothing.
func (s *summary) harness() {
	h := s.Harness
	// A system that does not tell the peak is not one without memory.
	rss := "peak memory unknown"
	if h.PeakRSSBytes != nil {
		rss = "peak memory " + bytes(h.PeakRSSBytes)
	}
	s.line("harness", "%s CPU (%s of %s cores), %s ns per byte, %s, %s (%s paused)",
		units.Seconds.Text(h.CPUSeconds), percent(h.Verdict.CPUShare), number(s.Limits.Cores),
		number(h.CPUNSPerByte), rss, units.Plural(h.GCCount, "collection"), ns(h.GCPauseNS))
	s.line("", "workers idle %s, host and buffer wait %s of busy time; %s cut off at the end",
		percent(h.Verdict.IdleShare), percent(h.Verdict.HostWaitShare),
		units.Plural(s.Requests.CancelledOperations, "operation"))
}

// witness is what the kernel counted beside what the application says. Ratios far from one mean a
// cache, read-ahead, or somebody else on the device.
func (s *summary) witness() {
	w := s.DeviceWitness
	if w.ReadBytes == nil {
		s.line("kernel", "no byte counts: %s", cmp.Or(w.Reason, "unknown"))
		return
	}
	s.line("kernel", "%s read %s (application %s, ratio %s), wrote %s (application %s, ratio "+
		"%s), busy %s", w.Device, bytes(w.ReadBytes), bytes(w.AppReadBytes), number(w.ReadRatio),
		bytes(w.WriteBytes), bytes(w.AppWriteBytes), number(w.WriteRatio), percent(w.BusyShare))
}

// doubts are warnings and failures, so many of them that they fit on a screen: what is left out is
// in the JSON. Those of a trace stand beside its numbers and not here.
func (s *summary) doubts() {
	const mostWarnings, mostErrors = 12, 5
	warnings := s.Warnings
	if tr := s.capture; tr != nil && tr.Capture.Status == tracing.StatusTraced {
		warnings = slices.DeleteFunc(slices.Clone(warnings),
			func(w string) bool { return slices.Contains(tr.Capture.Warnings, w) })
	}
	for i, w := range warnings {
		if i == mostWarnings {
			s.line("", "and %d more warnings in the JSON", len(warnings)-mostWarnings)
			break
		}
		s.put("warning", w)
	}
	for _, e := range s.Errors[:min(len(s.Errors), mostErrors)] {
		s.line("failed", "%s × %s %s: %s", count(e.Count), e.Tier, e.Operation, e.Errno)
	}
	for _, e := range s.ErrorSamples {
		if e.Message != "" {
			s.line("", "first: %s: %s", e.Where(), e.Message)
			break
		}
	}
}
