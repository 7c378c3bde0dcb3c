package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tracing"
)

// How values read in a sentence.
var (
	number, count, bytes = units.Number.Text, units.Count.Text, units.Bytes.Text
	rate, ns, percent    = units.BytesPerSec.Text, units.Nanoseconds.Text, units.Percent
)

// WriteSummary writes the trial's summary: what ran, what the storage did, for which load, at what
// cost, and what to doubt. Units are binary, "–" stands for unknown or for a percentile with too
// few samples. It fits in about 80 lines.
func WriteSummary(w io.Writer, r *result.Result) error {
	capture, err := captured(r)
	if err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	s := &summary{Result: r, capture: capture}
	// What ran, and what bounded it: before any number, because it says which of them to believe.
	s.head()
	if r.WindowNS <= 0 { // it failed before there was anything to measure
		s.knee() // the cells that were measured until then
		s.stalls()
		s.doubts()
		return s.writeTo(w)
	}
	s.line("verdict", "%s: %s", r.Harness.Verdict.Kind, r.Harness.Verdict.Reason)
	s.gap()
	s.throughput()
	s.tables(sizes(r))
	s.gap()
	// How long things took, from a single entry to a context.
	s.tables(latencies(r)...)
	s.tables(bySize(r), contexts(r))
	s.store()
	s.firstToken()
	s.gap()
	// What the cache did, and for which requests.
	s.tables(tiers(r), moved(r), roots(r))
	s.put("", laggard(r))
	s.cache()
	s.blocks()
	s.policy()
	s.validation()
	s.load()
	s.gap()
	// What it cost, what the kernel says of the same window, and what to doubt.
	s.harness()
	s.deviceCounters()
	s.network()
	if capture != nil {
		s.gap()
		_ = capture.WriteText(s, fioInput(r).Application) // into memory
	}
	s.stalls()
	s.doubts()
	return s.writeTo(w)
}

// writeTo writes the text at once, because other programs write to the same terminal.
func (s *summary) writeTo(w io.Writer) error {
	if _, err := io.WriteString(w, s.String()); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// summary writes lines with a topic in the margin. Each method writes one section, or nothing if
// the trial has no such part, so that a short trial has a short summary.
type summary struct {
	strings.Builder
	*result.Result
	capture *tracing.Trace // the kernel's trace, nil without one
}

// line writes one line; an empty topic continues the line above. Lines are not wrapped: a terminal
// does that, and a golden file shows the changed line.
func (s *summary) line(topic, format string, args ...any) {
	s.put(topic, fmt.Sprintf(format, args...))
}

// put writes a text, unless it is empty. Its further lines, such as those of several errors, have
// no topics.
func (s *summary) put(topic, text string) {
	if text != "" {
		text = strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", 12))
		fmt.Fprintf(s, "%-11s %s\n", topic, text)
	}
}

// lines writes lines of a topic and a text.
func (s *summary) lines(list [][2]string) {
	for _, line := range list {
		s.put(line[0], line[1])
	}
}

// tables writes those that have rows.
func (s *summary) tables(all ...Table) {
	for _, t := range all {
		s.WriteString(t.String())
	}
}

// gap separates groups of sections: what ran, how long it took, what the cache did, at what cost.
// An empty group leaves no gap.
func (s *summary) gap() {
	if !strings.HasSuffix(s.String(), "\n\n") {
		fmt.Fprintln(s)
	}
}

// head says what ran. A reader who compares two summaries looks here first, so it contains what
// makes results incomparable: I/O mode, write device time, deviations from the closed division.
func (s *summary) head() {
	s.title()
	s.put("", s.Notice)
	s.put("error", s.Error)
	s.simulated()
	s.clients()
	s.autoscaler()
	if m := s.Model; m.RankBytesPerToken > 0 && s.CompletionUnit != result.UnitOperation {
		name := cmp.Or(m.Name, m.Key)
		if m.StoredAs != "" {
			name += " in " + m.StoredAs
		}
		s.line("model", "%s, %s per token on %s, tensor parallel %d", name,
			bytes(m.RankBytesPerToken), m.Whose(), max(m.TensorParallel, 1))
	}
	s.workload()
	// Rates are of the window; the total is the user's waiting time.
	virtual := ""
	if s.Simulation != nil {
		virtual = " of virtual time"
	}
	warm := ""
	if s.WarmupNS > 0 {
		warm = "warm-up " + ns(s.WarmupNS) + ", "
	}
	// Above the window, because pauses in it change its rates.
	s.lines(checkpointLines(s.Checkpoint, s.Network))
	s.line("window", "%s%s of %s in all, %sdrain %s", ns(s.WindowNS), virtual, ns(s.ElapsedNS),
		warm, ns(s.DrainNS))
	dir := cmp.Or(strings.ReplaceAll(s.IO.CacheDir, "\n", `\n`), "no directory")
	if s.IO.CacheDir == "" && len(s.MergedRanks) > 1 {
		dir = "a directory of each rank's own"
	}
	io := fmt.Sprintf("%s I/O%s, %s chunks, depth %d", s.IO.Mode, engine(s.IO),
		bytes(s.IO.ChunkBytes), s.IO.Depth)
	if s.Simulation != nil {
		dir = ""
	} else {
		io += ", write device time is " + s.IO.WriteDevice
	}
	if s.IO.MaxConcurrentAllocs > 0 {
		io += fmt.Sprintf(", %d writes at a time", s.IO.MaxConcurrentAllocs)
	}
	switch {
	case s.Objects != nil:
		s.objectStore()
	case dir == "":
		s.put("storage", io)
	default:
		s.put("storage", strings.ReplaceAll(dir, ",", ", "))
		s.put("", io)
	}
	s.engine()
	s.differs()
	if p := s.Precondition; p != nil {
		s.line("precond.", "%s written in %s, the last rounds at %s on average, %s apart",
			bytes(p.Bytes), ns(p.DurationNS), rate(units.Finite(stat.Mean(p.LastRates, nil))),
			units.Share.Text(p.Spread))
	}
	s.replay()
	s.input()
}

// workload describes the load. A benchmark without requests has no arrivals and no turns, and then
// their words are left out.
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
	if w.Workers > 0 { // else it ended before there were any
		add(units.Plural(w.Workers, "worker"), "workers")
	}
	if s.CompletionUnit != result.UnitOperation {
		add(w.Arrival, w.Arrival)
		add(w.Turns+" turns", w.Turns)
		add("generation "+w.GenerationMode, w.GenerationMode)
		add("decode reads "+w.DecodeReads, w.DecodeReads)
	}
	parts = append(parts, fmt.Sprint("seed ", s.Seed))
	s.line("load", "%s", strings.Join(parts, ", "))
	// A profile's values count more than its name: versions of a name may differ.
	var set []string
	origin := ""
	for _, p := range s.Parameters {
		if strings.HasPrefix(p.Origin, "profile ") {
			origin = p.Origin
			name := strings.TrimPrefix(p.Name, "sessions.")
			set = append(set, fmt.Sprintf("%s %v", name, p.Value))
		}
	}
	if origin != "" {
		s.put("users", origin+" sets "+strings.Join(set, ", "))
	}
}

// differs lists the deviations of an option's run from the closed division. Other benchmarks have
// no closed form.
func (s *summary) differs() {
	if s.Option == nil || len(s.DiffersFromClosed) == 0 {
		return
	}
	var names []string
	for _, d := range s.DiffersFromClosed {
		names = append(names, fmt.Sprintf("%s %v (closed %v)", d.Name, d.Value, d.Closed))
	}
	s.put("differs", strings.Join(names, ", "))
}

// input describes the trace that was read. Malformed rows are reported even when there are none.
func (s *summary) input() {
	in := s.Input
	if in == nil {
		return
	}
	rows := units.Plural(in.Rows, "row")
	if s.PartOfInput() {
		rows = "the first " + rows
		if in.TotalRows != nil {
			rows = fmt.Sprintf("%s of %s (%s)", rows, count(in.TotalRows),
				percent(units.Ratio(in.Rows, *in.TotalRows)))
		}
	}
	line := fmt.Sprintf("%s, %s failed, %s malformed", rows, count(in.Failed), count(in.Malformed))
	if in.Skipped > 0 {
		line += fmt.Sprintf(", %s before the start of the replay", count(in.Skipped))
	}
	switch { // conversations are texts, sessions of agents are not
	case in.Tokenizer != "":
		line += ", tokens by " + in.Tokenizer
	case in.Sessions > 0:
		line += ", " + units.Plural(in.Sessions, "session") + ", up to " +
			count(in.LiveSessions) + " live"
	}
	s.put("input", line)
	if len(in.Problems) > 0 {
		s.put("", "the first malformed row is "+in.Problems[0])
	}
}

// simulated marks every simulated result in the margin with the kind of its time. On a device model
// it also reports the sustained users; with an autoscaler only the queue's growth, because the
// search has its own users.
func (s *summary) simulated() {
	m := s.Simulation
	if m == nil {
		return
	}
	rows := ""
	if m.TraceRows > 0 {
		rows = ", " + units.Plural(m.TraceRows, "row") + " in the I/O trace"
	}
	s.line("simulated", "computed in %s%s", ns(m.WallNS), rows)
	if m.Device == nil {
		s.put("", "storage was infinitely fast: latencies are 0 and rates are those of the load")
	} else {
		s.put("", "the device's medium was busy "+percent(m.DeviceBusyShare))
	}
	// A queue that grows without end means that the device is oversubscribed, whatever its rate.
	grew := "the queue grew by " + number(m.QueueGrowth) + " requests/s"
	switch {
	case m.SustainedUsers != nil:
		s.put("", sustainedUsers(s.Result))
		s.put("", grew)
	case m.QueueGrowth != nil:
		s.put("", grew)
	}
}

// autoscaler reports the sustained users and the rounds of the search.
func (s *summary) autoscaler() {
	a := s.Autoscaler
	if a == nil {
		return
	}
	s.line("autoscaler", "%s, %s from %d to %d users", sustained(a.AutoscaleSummary),
		units.Plural(a.Rounds, "round"), a.InitialUsers, a.FinalUsers)
	s.tables(rounds(s.Result))
	if n := len(a.History); n > mostRounds {
		s.line("", "%d of %d rounds, the others are in the JSON; latencies are per 100 MiB",
			mostRounds, n)
	} else if n > 0 {
		s.put("", "latencies are per 100 MiB")
	}
}

// replay reports the executed operations, and those without I/O, because the entry had been evicted
// or was never written.
func (s *summary) replay() {
	p := s.Replay
	if p == nil {
		return
	}
	s.line("replay", "%s, %s of other tiers or phases; %s (%s of what was there), %s, %s",
		units.Plural(p.Rows, "row"), count(p.Skipped), units.Plural(p.Writes, "write"),
		count(p.Overwrites), units.Plural(p.Reads, "read"), units.Plural(p.Deletes, "delete"))
	s.line("", "without I/O: %s of evicted and %s of never written entries, %s larger than the "+
		"tier; %s to make room", units.Plural(p.EvictedReads, "read"), count(p.UnwrittenReads),
		units.Plural(p.TooLarge, "write"), units.Plural(p.Evictions, "deletion"))
	if p.LateNS > 0 {
		s.line("", "at most %s behind the trace's timestamps", ns(p.LateNS))
	}
}

// knee writes the grid in which the knee was found, and its consequences.
func (s *summary) knee() {
	s.tables(kneeGrid(s.Result))
	s.lines(kneeLines(s.Result))
}

// throughput is the completions in the window, in the unit of the benchmark, and their share of
// plain sequential I/O if a StorageCeiling ran before in the same process. Tokens per second of
// storage time, a figure of the Python benchmark that adds up the times of parallel requests, is on
// the benchmark line alone.
func (s *summary) throughput() {
	if s.CompletionUnit == result.UnitOperation {
		s.put("throughput", units.Plural(s.Completions(), "operation"))
		s.lines(plainLines(s.Result))
		s.tables(blockIO(s.Result))
		s.knee()
	} else {
		s.line("throughput", "%s, %s requests/s, %s tok/s",
			units.Plural(s.Requests.Completed, "request"),
			number(units.Ratio(s.Requests.Completed, float64(s.WindowNS)/1e9)),
			number(units.Ratio(s.Requests.GeneratedTokens, float64(s.WindowNS)/1e9)))
	}
	if c := s.Ceiling; c != nil {
		// Each of them, because the ratio is interpolated and a reader may want to check it.
		var points []string
		for _, p := range c.Points {
			points = append(points, fmt.Sprintf("%s at %s reads", rate(p.Rate),
				units.Share.Text(p.ReadShare)))
		}
		s.line("", "%s of what plain sequential I/O moves in this mix, removing nothing (%s)",
			percent(s.CeilingRatio), strings.Join(points, ", "))
	}
}

// cache splits the prompts into found tokens, new tokens, which no cache can have, and missing
// ones; they add up to all. For a block trace the missing tokens are split by its ideal hits: first
// requests show nothing about the size of the cache. Turns that overtook the one before them are
// reported separately: no cache could have had their history.
func (s *summary) cache() {
	p := s.Prompt
	if p == nil || p.Tokens == 0 {
		return
	}
	line := fmt.Sprintf("%s of the %s prompt tokens of %s were found", percent(p.HitRatio),
		count(p.Tokens), units.Plural(p.Requests, "completed request"))
	if kinds := promptKinds(p); kinds != "" {
		line += " (" + kinds + ")"
	}
	created := p.ByKind["new"].Tokens
	missing := p.Tokens - p.Found - created
	share := func(tokens int64) string { return percent(units.Ratio(tokens, p.Tokens)) }
	line += fmt.Sprintf(", %s are new, ", share(created))
	if first, known := s.firstRequests(missing); known {
		line += share(first) + " were requested for the first time"
		if lost := missing - first; lost > 0 && evicted(s.Result) {
			line += fmt.Sprintf(", %s were evicted or not yet written", share(lost))
		} else if lost > 0 {
			line += fmt.Sprintf(", %s were not yet written", share(lost))
		}
	} else {
		line += fmt.Sprintf("the other %s were not found", share(missing))
	}
	if p.NotYetWritten > 0 {
		line += fmt.Sprintf(" (%s of turns that overtook the one before)", count(p.NotYetWritten))
	}
	s.put("cache", line)
}

// firstRequests is the number of missing tokens that no cache could have had, because their blocks
// were requested for the first time. The ideal hits are those of all dispatched requests, so the
// number is unknown if others than these completed, unless the cache found every possible hit.
func (s *summary) firstRequests(missing int64) (first int64, known bool) {
	c := s.BlockCache
	switch {
	case c == nil || c.IdealHits == nil:
		return 0, false
	case *c.IdealHits == c.Hits && !evicted(s.Result):
		return missing, true
	case c.Requests != s.Prompt.Requests || c.HitTokens != s.Prompt.ByKind["block"].Found:
		return 0, false
	}
	return missing * (c.Blocks - *c.IdealHits) / max(1, c.Blocks-c.Hits), true
}

// evicted reports whether any tier evicted entries in the window.
func evicted(r *result.Result) bool {
	return slices.ContainsFunc(r.Tiers, func(t result.Tier) bool { return t.Evicted.Entries > 0 })
}

// promptKinds are the hit ratios of each part of the prompts that is not new.
func promptKinds(p *result.Prompt) string {
	var parts []string
	for _, k := range result.PromptKinds {
		if n, some := p.ByKind[k]; some && k != "new" {
			parts = append(parts, strings.ReplaceAll(k, "_", "-")+" "+percent(n.HitRatio))
		}
	}
	return strings.Join(parts, ", ")
}

// validation compares the run with the recorded one: a simulation or another machine can be
// believed only if it repeats known numbers.
func (s *summary) validation() {
	v := s.Recording
	if v == nil {
		return
	}
	word := "FAILED: not within"
	if v.Passed {
		word = "passed: within"
	}
	s.line("validation", "%s %s of the run recorded in %s (%s, %s malformed)", word,
		units.Share.Text(v.Tolerance), v.Trace, units.Plural(v.Requests, "request"),
		count(v.Malformed))
	s.tables(validation(s.Result))
}

// served is the offered requests and their outcomes, by class and in total. A p95 is marked as a
// lower bound where the slowest requests were still waiting at the end; a class without a target
// has no compliance.
func served(r *result.Result) *Table {
	t := &Table{Topic: "served",
		Columns: head("", units.Count, "offered", "served", units.Share, "share",
			units.Count, "in flight", "queued", units.Seconds, "oldest queued",
			units.Nanoseconds, "e2e p95", units.Number, "SLA", units.Share, "compliance")}
	total := r.Load["total"]
	if r.CompletionUnit == result.UnitOperation ||
		total.Completed+total.InFlight+total.Queued == 0 {
		return nil
	}
	add := func(name string, o result.ClassOutcome, d result.Distribution) {
		var p95, target, compliance any = d.P95, "", ""
		if o.Censored && d.P95 != nil { // the slowest are still waiting
			p95 = "≥ " + ns(d.P95)
		}
		if o.Compliance != nil {
			target, compliance = "p95 ≤ "+ns(o.TargetP95NS), o.Compliance
		}
		t.add(name, o.Offered, o.Completed, o.ServedRatio, o.InFlight, o.Queued,
			o.OldestQueuedAgeS, p95, target, compliance)
	}
	for _, c := range result.Classes {
		if o, ok := r.Load[c]; ok && o.Offered+o.Completed+o.InFlight+o.Queued > 0 {
			add(c, o, r.Latency.Request.ByClass[c])
		}
	}
	add("total", total, r.Latency.Request.EndToEnd)
	return t
}

// load writes the table and the served share of the offered load, the number to look at when a
// trial is oversubscribed.
func (s *summary) load() {
	if t := served(s.Result); t != nil {
		s.tables(*t)
		total := s.Load["total"]
		s.line("", "%s of the offered load was served%s; %s were offered for writing",
			percent(total.ServedRatio), unserved(total), bytes(total.OfferedBytes))
	}
}

// unserved says why some requests did not complete. With an empty queue none waited for the
// storage: the rest was in flight at the window's end.
func unserved(o result.ClassOutcome) string {
	if o.Queued > 0 || o.InFlight == 0 {
		return ""
	}
	return fmt.Sprintf(", all of it was begun: %s in flight when the window ended",
		units.Plural(o.InFlight, "request"))
}

// harness is the cost of measuring, and the shares behind the verdict. A share that could not be
// measured is unknown and has decided nothing.
func (s *summary) harness() {
	h := s.Harness
	// Unknown on systems that do not report the peak.
	rss := "peak memory unknown"
	if h.PeakRSSBytes != nil {
		rss = "peak memory " + bytes(h.PeakRSSBytes)
	}
	cpu := units.Seconds.Text(float64(h.CPUNS)/1e9) + " CPU"
	if s.Simulation == nil { // a simulation's own cost is unrelated to the run it predicts
		if share := h.Verdict.CPUShare; share != nil { // several hosts have no common number
			cpu += fmt.Sprintf(" (%s of %s cores)", percent(share), number(s.Limits.Cores))
		}
		if h.CPUNSPerByte != nil {
			cpu += fmt.Sprintf(", %s ns of it per byte", number(h.CPUNSPerByte))
		}
	}
	s.line("harness", "%s, %s, %s (%s paused)", cpu, rss,
		units.Plural(h.GCCount, "garbage collection"), ns(h.GCPauseNS))
	took := ""
	if share := h.Verdict.HarnessShare; share != nil {
		took = fmt.Sprintf(", harness %s of busy time", percent(share))
	}
	cut := units.Plural(s.Requests.CancelledOperations, "operation") + " cut off at the end"
	if s.EndedBy == result.EndedBySignal { // the result did not wait for them
		cut = "operations that were in flight when it was interrupted are not counted"
	}
	s.line("", "workers idle %s%s; %s", percent(h.Verdict.IdleShare), took, cut)
}

// deviceCounters compares the kernel's counts with the application's. Ratios far from one mean a
// cache, read-ahead, or another process on the device.
func (s *summary) deviceCounters() {
	w := s.DeviceWitness
	if s.Simulation != nil || s.Network != nil {
		return // no device: a simulation is marked at its top, a store has network counters
	}
	if w.ReadBytes == nil {
		s.line("kernel", "no byte counts: %s", cmp.Or(w.Reason, "unknown"))
		return
	}
	s.line("kernel", "%s read %s (application %s, ratio %s), wrote %s (application %s, ratio "+
		"%s), busy %s", w.Device, bytes(w.ReadBytes), bytes(w.AppReadBytes), number(w.ReadRatio),
		bytes(w.WriteBytes), bytes(w.AppWriteBytes), number(w.WriteRatio), percent(w.BusyShare))
	if n := units.OrZero(w.DiscardIOs); n > 0 {
		s.line("", "%s of %s after deletions, mean %s, %s summed over parallel ones",
			units.Plural(n, "discard"), bytes(w.DiscardBytes), ns(units.OrZero(w.DiscardNS)/n),
			ns(w.DiscardNS))
	}
}

// doubts are warnings and failures, as many as fit on a screen: the JSON has all. Warnings of a
// trace stand with its numbers and not here.
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
