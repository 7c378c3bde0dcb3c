package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// Tables are sections of some results only, in the order in which they are shown. The first says
// that a result is a prediction, if it is one.
func Tables(r *result.Result) (all []Table) {
	for _, of := range []func(*result.Result) Table{simulation, autoscaling, blockIO, knee,
		blocks, replay, objects, endpoints, checkpointRuns, validation} {
		if t := of(r); t.Title != "" {
			all = append(all, t)
		}
	}
	return all
}

// Sections are the tables of the summary, which every result of a kind has: the served load, the
// sizes of entries, the times of entries and requests, the content and the traffic of the tiers.
// Their columns have names for the text alone; the others use those.
func Sections(r *result.Result) (all []Table) {
	if r.WindowNS <= 0 {
		return nil // it failed before the window
	}
	of := latencies(r)
	for _, s := range []struct {
		title, sheet string
		t            Table
	}{{"Load served, by class", "Load Served", *cmp.Or(served(r), &Table{})},
		{"Time to the first token", "First Token", firstTokens(r)},
		{"Time to load a context", "Time To Load", contexts(r)},
		{"Sizes of entries", "Entry Sizes", sizes(r)}, {"Latency per entry", "Latencies", of[0]},
		{"Latency by size", "Latency By Size", bySize(r)},
		{"Where the time of requests went", "Request Time", of[1]},
		{"What the tiers held at the end", "Tiers", tiers(r)},
		{"What the tiers moved", "Bytes Moved", moved(r)},
		{"What each directory had and moved", "Directories", roots(r)}} {
		if s.t.Title, s.t.Sheet = s.title, s.sheet; len(s.t.Rows) > 0 {
			all = append(all, s.t)
		}
	}
	return all
}

// simulation describes the model of the times, if any. The workbook has the model's parameters as
// columns; on the page they are a sentence, because there is one row of them.
func simulation(r *result.Result) (t Table) {
	s := r.Simulation
	if s == nil {
		return t
	}
	// Without a model of a device storage is infinitely fast, and its columns stay empty.
	row := []any{r.Notice, nil, nil, nil, nil, nil, nil}
	t.Words = []string{"Storage was infinitely fast: latencies are 0 and rates are those of the " +
		"load."}
	if d := s.Device; d != nil {
		row = []any{r.Notice, d.Read, d.Write, float64(d.ReadLatency) / 1e3,
			float64(d.WriteLatency) / 1e3, d.Parallelism, d.Duplex}
		t.Words = deviceWords(r, d)
	}
	t.Title, t.Sheet = "Simulated, not measured", "Simulation"
	t.Columns = []Column{{Sheet: "Notice"}, {Sheet: "Model Read (GiB/s)", Unit: units.BytesPerSec},
		{Sheet: "Model Write (GiB/s)", Unit: units.BytesPerSec},
		{Sheet: "Model Read Latency (µs)"}, {Sheet: "Model Write Latency (µs)"},
		{Sheet: "Model Parallelism"}, {Sheet: "Model Duplex"},
		{Sheet: "Medium Busy", Unit: units.Share}, {Sheet: "Sustained Users"}, {Sheet: "Users"},
		{Sheet: "Queue Growth (requests/s)"}, {Sheet: "I/O Trace Rows"},
		{Sheet: "Computed In (s)"}}
	t.add(append(row, s.DeviceBusyShare, s.SustainedUsers, r.Workload.Users, s.QueueGrowth,
		s.TraceRows, float64(s.WallNS)/1e9)...)
	return t
}

// deviceWords is the model in words, and how near it was to its limit.
func deviceWords(r *result.Result, d *result.SimulatedDevice) []string {
	medium := "one medium for reads and writes"
	if d.Duplex {
		medium = "a medium for each direction"
	}
	s := r.Simulation
	line := "Its medium was busy " + units.Share.Text(s.DeviceBusyShare) + " of the time"
	if s.QueueGrowth != nil {
		line += ", the queue grew by " + number(s.QueueGrowth) + " requests/s"
	}
	if s.SustainedUsers != nil {
		line += ", and " + sustainedUsers(r)
	}
	return []string{fmt.Sprintf("The times are those of a model of a device: reads %s after %s, "+
		"writes %s after %s, %d requests at a time, %s.", rate(d.Read), d.ReadLatency,
		rate(d.Write), d.WriteLatency, d.Parallelism, medium), line + "."}
}

// sustainedUsers reports how many users a simulated device sustains: one sentence for the log, the
// summary and the page, so that they round alike.
func sustainedUsers(r *result.Result) string {
	n, users := *r.Simulation.SustainedUsers, r.Workload.Users
	const meaning = "a user's request is answered, on average, before the next one is made"
	switch n {
	case 0:
		return fmt.Sprintf("it would sustain not one user of %d: even one alone makes the next "+
			"request, on average, before the last is answered", users)
	case users:
		return fmt.Sprintf("it would sustain all of %s: %s", units.Plural(users, "user"), meaning)
	}
	return fmt.Sprintf("it would sustain %d of %d users: with so many, and no more, %s", n, users,
		meaning)
}

// sustained reports how many users an autoscaler sustained, and whether that is the answer or only
// the last step of the search.
func sustained(a result.AutoscaleSummary) string {
	how := "the window ended before it was found"
	if a.Found {
		how = "found"
	}
	return fmt.Sprintf("%s: %d users sustained (%s), at most %d ran, at most %s", a.Mode,
		a.SustainedUsers, how, a.PeakUsers, rate(a.PeakRate))
}

// autoscaling has a row for each round: users and workers, the storage's rates, and the decision.
// Mode and outcome stand in every row, so that rows of many results can be filtered.
func autoscaling(r *result.Result) (t Table) {
	a := r.Autoscaler
	if a == nil {
		return t
	}
	n, ms, bandwidth := units.Count, units.Milliseconds, units.BytesPerSec
	t = Table{Title: "Autoscaler", Sheet: "Autoscaling", Folded: true,
		Words: []string{fmt.Sprintf("%s; %d rounds, from %d to %d users.",
			sustained(a.AutoscaleSummary), a.Rounds, a.InitialUsers, a.FinalUsers)},
		Note: "Latencies are per 100 MiB; noise is two standard errors of the rate.",
		Columns: []Column{{"round", "round", "Round", n},
			{"at", "ended at", "Ended At (s)", units.Seconds}, {"users", "users", "Users", n},
			{"workers", "workers", "Workers", n}, {"goroutines", "goroutines", "Goroutines", n},
			{"bytes/s", "storage rate", "Storage Rate (GiB/s)", bandwidth},
			{"", "noise", "Noise (GiB/s)", bandwidth},
			{"read p95", "read p95", "Read P95 per 100 MiB (ms)", ms},
			{"write p95", "write p95", "Write P95 per 100 MiB (ms)", ms},
			{"saturation", "saturation", "Saturation", units.Share},
			{"then users", "then users", "Next Users", n},
			{"decision", "decision", "Decision", units.Number}, {Sheet: "Mode"},
			{Sheet: "Users Sustained"}, {Sheet: "Peak Users"},
			{Sheet: "Peak Rate (GiB/s)", Unit: bandwidth}, {Sheet: "Found"}}}
	for i, x := range a.History {
		t.add(i+1, x.AtS, x.Users, x.Workers, x.Goroutines, x.BytesPerSecond, x.Noise, x.ReadP95,
			x.WriteP95, x.Saturation, x.NextUsers, x.Decision, a.Mode, a.SustainedUsers,
			a.PeakUsers, a.PeakRate, a.Found)
	}
	return t
}

// mostRounds is how many rounds of an autoscaler are listed, including the first and the last.
const mostRounds = 9

// rounds are those of an autoscaler that the text lists.
func rounds(r *result.Result) Table {
	t := autoscaling(r)
	t.Rows = shown(t.Rows, mostRounds)
	return t
}

// shown returns up to most rows, evenly spaced, including the first and the last: a few of hundreds
// of rounds show a search.
func shown[R any](rows []R, most int) (some []R) {
	k := min(len(rows), most)
	for i := range k {
		some = append(some, rows[i*(len(rows)-1)/max(k-1, 1)])
	}
	return some
}

// replay counts the outcomes of the rows of an I/O trace.
func replay(r *result.Result) (t Table) {
	p := r.Replay
	if p == nil {
		return t
	}
	n := units.Count
	t = Table{Title: "Replay of an I/O trace", Sheet: "Replay",
		Note: "Reads of evicted and of never written entries, and writes larger than the tier, " +
			"cost no I/O.",
		Columns: []Column{{"", "rows", "Rows", n}, {"", "not selected", "Not Selected", n},
			{"", "reads", "Reads", n}, {"", "writes", "Writes", n}, {"", "deletes", "Deletes", n},
			{"", "reads of evicted", "Reads of Evicted", n},
			{"", "reads of never written", "Reads of Never Written", n},
			{Sheet: "Deletes of Unknown"}, {"", "overwrites", "Overwrites", n},
			{"", "too large", "Too Large", n}, {"", "deleted for room", "Deleted for Room", n},
			{"", "largest delay", "Largest Delay (ms)", units.Milliseconds}}}
	t.add(p.Rows, p.Skipped, p.Reads, p.Writes, p.Deletes, p.EvictedReads, p.UnwrittenReads,
		p.UnknownDeletes, p.Overwrites, p.TooLarge, p.Evictions, float64(p.LateNS)/1e6)
	return t
}

// validation compares the measured with the recorded numbers. A number that one of the runs lacks
// is shown and not judged.
func validation(r *result.Result) (t Table) {
	v := r.Recording
	if v == nil {
		return t
	}
	word := "Failed: not within"
	if v.Passed {
		word = "Passed: within"
	}
	t = Table{Title: "Validation against a recorded run", Sheet: "Validation",
		Words: []string{fmt.Sprintf("%s %s of %s (%s requests, %s malformed).", word,
			units.Share.Text(v.Tolerance), v.Trace, count(v.Requests), count(v.Malformed))},
		Columns: []Column{{" ", " ", "Number", units.Number},
			{"run", "run", "This Run", units.Number},
			{"recorded", "recorded", "Recorded", units.Number},
			{"difference", "difference", "Difference", units.Share},
			{Sheet: "Tolerance", Unit: units.Share}, {"judged", "judged", "Judged", units.Number},
			{Sheet: "Validation Passed"}, {Sheet: "Recorded Requests"}, {Sheet: "Malformed Rows"},
			{Sheet: "Recorded In"}}}
	for _, c := range v.Checks() {
		t.add(c.Name, c.Measured, c.Recorded, c.Difference, v.Tolerance, c.Word(), v.Passed,
			v.Requests, v.Malformed, v.Trace)
	}
	return t
}

// blockIO is requests inside files: their rate, latency and cost. The requested number in flight
// stands next to the actual one: if they differ the process, not the device, was late. A request
// here is a whole operation, so its latency is in no other table but that of I/O requests.
func blockIO(r *result.Result) (t Table) {
	p := r.PlainIO
	if p == nil || p.BlockBytes == 0 {
		return t
	}
	d := units.Milliseconds
	t = Table{Topic: "block I/O", Title: "Requests inside files", Sheet: "Block I/O",
		Note: "Requests of one size at random places in files that stay open, without flushes. " +
			"In flight is the mean number at the device, CPU what this process used of its " +
			"processors for a request.",
		Columns: []Column{{Text: " ", Page: "operation"}, both("size", units.Bytes),
			both("asked for", units.Count), both("in flight", units.Number),
			both("requests/s", units.Number), both("rate", units.BytesPerSec), both("mean", d),
			both("p50", d), both("p99", d), both("p99.9", d),
			{Text: "CPU", Page: "CPU per request", Unit: d}}}
	lat := r.Latency.Levels["storage"]
	read, write := r.StorageTraffic()
	row := func(op string, n result.TierTraffic, l result.Distribution) {
		if n.Requests > 0 {
			t.add(op, p.BlockBytes, int64(r.Workload.Workers), n.MeanInFlight, p.RequestsPerSecond,
				n.BytesPerSecond, ms(l.Mean), ms(l.P50), ms(l.P99), ms(l.P999),
				ms(p.CPUNSPerRequest))
		}
	}
	row("read", read, lat.Read.Request)
	row("write", write, lat.Write.Request)
	return t
}

// blocks compares the hit ratio of a block trace with the ideal one of a cache without bounds: policies differ
// in the fourth digit.
func blocks(r *result.Result) (t Table) {
	b := r.BlockCache
	if b == nil {
		return t
	}
	n := units.Count
	t = Table{Title: "Block cache", Sheet: "Block Cache",
		Note: "Ideal is a cache without bounds on the same requests. The prefix-hit ratio is the " +
			"share of the requests of which at least the first block was found.",
		Columns: []Column{{"", "block hit ratio", "Block Hit Ratio", units.HitRatio},
			{"", "ideal", "Ideal Hit Ratio", units.HitRatio},
			{"", "prefix-hit ratio", "Prefix-hit Ratio", units.Share},
			{"", "tokens hit", "Token Hit Ratio", units.Share},
			{"", "bytes saved", "Bytes Saved (GiB)", units.Bytes}, {Sheet: "Requests"},
			{"", "blocks asked for", "Blocks", n}, {"", "hit", "Hits", n}, {Sheet: "Pending Hits"},
			{"", "written", "Written", n}, {"", "behind a missing one", "Behind a Missing One", n}}}
	t.add(b.HitRatio, b.IdealHitRatio, b.PrefixHitRatio, b.TokenHitRatio, b.BytesSaved, b.Requests,
		b.Blocks, b.Hits, b.Pending, b.Written, b.Unreachable)
	return t
}

// blocksOverTime shows the hit ratio and the ideal one in each tenth of the window: where they
// converge the cache is warm. The ideal is unknown where an interval's is.
func blocksOverTime(r *result.Result) (t Table) {
	const parts = 10
	x := r.Timeline.BlockRatios(parts)
	if x == nil || len(x.At) < parts {
		return t
	}
	unknown := slices.DeleteFunc(slices.Clone(x.Hit), func(v float64) bool {
		return units.Finite(v) != nil
	})
	if 2*len(unknown) > parts {
		return t // too few requests for a time series
	}
	t.Columns = head("hit ratio by time")
	run, ideal := []any{"run"}, []any{"ideal"}
	for i := range parts {
		t.Columns = append(t.Columns, Column{Text: fmt.Sprintf("%d–%d %%", i*100/parts,
			(i+1)*100/parts)})
		run, ideal = append(run, ratioText(x.Hit[i])), append(ideal, ratioText(x.Ideal[i]))
	}
	t.Rows = [][]any{run, ideal}
	return t
}

// ratioText has the digits by which a hit ratio is compared with the ideal one: in a tenth of a
// window there are too few blocks for more.
func ratioText(v float64) string {
	if units.Finite(v) == nil {
		return units.Unknown
	}
	return fmt.Sprintf("%.3f", v)
}

// blocks are the hits of a block trace, the saved bytes, and the operations.
func (s *summary) blocks() {
	c := s.BlockCache
	if c == nil {
		return
	}
	ratio := units.HitRatio.Text
	of := ""
	if s.PartOfInput() {
		of = "of the part that was replayed, "
	}
	s.line("blocks", "%s%s of %s of %s hit: ratio %s, ideal (a cache without bounds) %s; %s "+
		"waited for their writer", of, count(c.Hits), units.Plural(c.Blocks, "block"),
		units.Plural(c.Requests, "dispatched request"), ratio(units.OrZero(c.HitRatio)),
		ratio(c.IdealHitRatio), count(c.Pending))
	s.line("", "prefix-hit ratio %s of these requests; %s saved; %s there but behind a missing one",
		percent(c.PrefixHitRatio), bytes(c.BytesSaved), count(c.Unreachable))
	if c.Reads.Blocks != c.Reads.Operations || c.Writes.Blocks != c.Writes.Operations {
		s.line("", "%s read by %s, %s written by %s", units.Plural(c.Reads.Blocks, "block"),
			units.Plural(c.Reads.Operations, "operation"), units.Plural(c.Writes.Blocks, "block"),
			units.Plural(c.Writes.Operations, "operation"))
	}
	s.tables(blocksOverTime(s.Result))
}

// engine reports the imitated engine, and the parameters that the user changed: the numbers are
// then not the engine's.
func (s *summary) engine() {
	if name, its, others := s.Imitated(); name != "" {
		s.line("engine", "%s: %s", name, strings.Join(its, ", "))
		if len(others) > 0 {
			s.line("", "not the engine's: %s", strings.Join(others, ", "))
		}
	}
}

// policy describes the placement of entries, the bytes that it moved, and the wear of the storage
// tier. A run with users and the usual policy reports neither: it runs as fast as it can, which no
// server does for a day. Moves that did not happen, and rules that are not in force, are left out.
//
// The writes per day are reported with their bytes: drives differ in size, and
// the tier may be a part of one.
func (s *summary) policy() {
	p := s.Policy
	if p == nil || p.Default() && s.BlockCache == nil {
		return
	}
	// Only the moves that happened: most policies do one or two of these.
	var moved []string
	for _, n := range []struct {
		what string
		result.EntryCount
	}{{"copied to the storage tier", p.Copied}, {"promoted", p.Promoted},
		{"dropped where they lived on elsewhere", p.Dropped},
		{"let go above the storage tier", p.Refused}, {"not written", p.Unwritten}} {
		if n.Entries > 0 {
			moved = append(moved, fmt.Sprintf("%s (%s) %s", count(n.Entries), bytes(n.Bytes),
				n.what))
		}
	}
	words := fmt.Sprintf("%s, promotion %s, eviction %s", p.Tier, p.Promote, p.Evict)
	// In the flags' words, and only those that are in force: most policies have none of them.
	if p.AdmitAfter > 0 {
		words += fmt.Sprintf(", admit-after %d", p.AdmitAfter)
	}
	s.line("policy", "%s", words)
	if len(moved) > 0 {
		s.line("", "%s", strings.Join(moved, "; "))
	}
	// The same requests in the same order: the difference is due to the policy.
	if c := p.Compared; c != nil {
		s.line("", "of %s %s were there, ratio %s; -tier-policy waterfall with -evict lru would "+
			"have had %s, ratio %s: %s %s", units.Plural(c.Lookups, "lookup"), count(c.Hits),
			units.HitRatio.Text(units.OrZero(units.Ratio(c.Hits, c.Lookups))),
			count(c.WaterfallHits),
			units.HitRatio.Text(units.OrZero(units.Ratio(c.WaterfallHits, c.Lookups))),
			count(max(c.WaterfallHits-c.Hits, c.Hits-c.WaterfallHits)),
			map[bool]string{true: "more", false: "fewer"}[c.WaterfallHits >= c.Hits])
	}
	if p.MostBehind > 0 {
		s.line("", "at most %s of %s waited to be written behind the requests",
			bytes(p.MostBehind), bytes(p.BehindBytes))
	}
	// A drive's rating is in the same unit, over years; here it is at the window's rate.
	if d := p.DriveWritesPerDay; d != nil {
		// A drive larger than its tier is written less often: the bytes can be compared with any
		// drive's rating.
		written := ""
		for _, tier := range s.Tiers {
			if tier.Level == "storage" && s.WindowNS > 0 {
				n := float64(tier.Write.Bytes) / float64(s.WindowNS) * 86400e9
				written = units.Bytes.Text(int64(n)) + " a day, "
			}
		}
		s.line("", "at this window's pace %sthe storage tier is written %s times a day",
			written, number(*d))
	}
}

// checkpointRuns has a row for each run. Common facts are sentences on the page; in the workbook
// the model and its scale are columns, so that rows of many results can be filtered.
func checkpointRuns(r *result.Result) (t Table) {
	c := r.Checkpoint
	if c == nil {
		return t
	}
	t = Table{Title: "Checkpoints", Sheet: "Checkpoints",
		Columns: []Column{{Page: "operation", Sheet: "Operation"},
			{Page: "checkpoint", Sheet: "Checkpoint", Unit: units.Count},
			{Page: "time", Sheet: "Time (s)", Unit: units.Seconds},
			{Page: "fastest accelerator", Sheet: "Fastest Accelerator (s)", Unit: units.Seconds},
			{Page: "slowest one", Sheet: "Slowest Accelerator", Unit: units.Number},
			{Page: "bytes", Sheet: "Size (GiB)", Unit: units.Bytes},
			{Page: "rate", Sheet: "Rate (GiB/s)", Unit: units.BytesPerSec},
			{Page: "cached before", Sheet: "Cached Before (GiB)", Unit: units.Bytes},
			{Page: "at the device", Sheet: "At The Device (GiB)", Unit: units.Bytes},
			{Page: "cold", Sheet: "Cold"}, {Sheet: "Model"}, {Sheet: "Scale"},
			{Sheet: "Accelerators"}, {Sheet: "Gap (s)"}, {Sheet: "Bottleneck"}}}
	t.Words = sentences(checkpointLines(c, r.Network))
	// Empty cells, not zeros: writes have no gap, and reads no pipeline.
	var gap, limit any
	if c.GapNS != nil {
		gap = float64(*c.GapNS) / 1e9
	}
	if c.Stages != nil {
		limit = c.Stages.Bottleneck
	}
	// Unknown values are empty cells: documents cannot draw a pointer to a bool.
	add := func(op string, runs []result.CheckpointRun) {
		for _, x := range runs {
			cold := any(nil)
			if x.Cold != nil {
				cold = *x.Cold
			}
			t.add(op, x.Index, float64(x.DurationNS)/1e9, float64(x.MinNS)/1e9, x.Slowest,
				x.Bytes, x.Rate(), x.CachedBytes, x.DeviceBytes, cold, c.Model,
				fmt.Sprintf("1/%d", c.Scale), c.Accelerators, gap, limit)
		}
	}
	add("write", c.Writes)
	add("read", c.Reads)
	return t
}
