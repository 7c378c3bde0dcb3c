package record

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/kvbench/verdict"
	"kvbench/tiers"
	"kvbench/tracing"
	"kvbench/workloads"
	"kvbench/workloads/compute"
	"kvbench/workloads/model"
)

// Input converts the report of a recorded source about its file.
func Input(r workloads.TraceReport) *result.Input {
	in := &result.Input{Rows: r.Rows, Failed: r.Failed, Malformed: r.Malformed, Skipped: r.Skipped,
		Unordered: r.Unordered, Interpreted: r.Interpreted, Notes: r.Notes,
		Cycles: int64(r.Cycles), Tokenizer: r.Tokenizer,
		Sessions: r.Sessions, LiveSessions: int64(r.Live)}
	for _, p := range r.First {
		in.Problems = append(in.Problems, p.Error())
	}
	return in
}

// Build returns the trial's Result from the engine's facts and the Recorder's counts. The Result
// shares the pointers of info. If samples still come, the numbers of different sections may
// disagree.
func Build(info Info, rec *Recorder) *result.Result {
	b := newBuilder(&info, rec)
	b.describe()
	b.tiers()
	b.requests()
	b.errors()
	if p := b.r.PlainIO; p != nil && p.BlockBytes > 0 {
		p.RequestsPerSecond = b.perSecond(b.r.Requests.Operations)
	}
	b.lookups()
	b.prompt()
	b.blocks()
	b.compared()
	b.r.ContextLoad = b.contexts()
	b.firstToken()
	b.load()
	b.busy()
	b.deviceCounters()
	b.roots()
	b.r.Rates()
	b.r.Complete(b.hists)
	b.ceiling()
	b.simulation()
	b.r.Harness.Verdict = verdict.Judge(b.r)
	b.timeline()
	b.histograms()
	b.warnings()
	b.validation()
	b.status()
	return b.r
}

// describe completes the engine's facts. It copies lists, because the engine keeps its own. A list
// is never null in the JSON.
func (b *builder) describe() {
	r := b.r
	r.SchemaVersion = result.SchemaVersion
	r.Seed += uint64(r.Rank)
	r.CompletionUnit = cmp.Or(r.CompletionUnit, result.UnitRequest)
	r.WindowNS = int64(b.window)
	if r.Division == result.DivisionClosed {
		r.Notice = cmp.Or(r.Notice, result.ClosedNotice)
	}
	r.Model.RankBytesPerToken = b.info.Sizer.One().Bytes(1)
	r.Parameters = append([]result.Parameter{}, r.Parameters...)
	r.DiffersFromClosed = append([]result.Difference{}, r.DiffersFromClosed...)
	r.Warnings = append([]string{}, r.Warnings...)
}

// requests fills in the exact counts of the window.
func (b *builder) requests() {
	r := b.r
	r.Requests = b.n.Requests
	r.Requests.OldestCancelledNS = b.oldest
	for _, t := range b.n.Tiers {
		r.FirstReads.Add(t.FirstReads)
		r.ReReads.Add(t.ReReads)
	}
	if r.Removal != nil { // of which nothing is read or written
		r.Requests.Completed = r.Removal.Files
	}
	m, own := &r.Moved, b.n.Lookups[workloads.ForPrefill]
	*m = b.n.Moved
	m.OwnFound += own.Hits
	m.OwnGone = own.Misses
}

// promptPurposes are the parts of prompts, in the order of result.PromptKinds. Without the new part
// at their end they are in the order of result.LookupKinds: writing an entry and reading it again
// are no lookups.
var promptPurposes = [len(result.PromptKinds)]workloads.Purpose{
	workloads.ForPrefix, workloads.ForHistory, workloads.ForDecodeRead, workloads.ForBlock,
	workloads.ForRetrieval, workloads.ForPrefill,
}

// lookups counts decisions. A pending entry is a hit: it need not be computed again. A conversation's
// turn that overtook the turn before it is neither hit nor miss: no cache could have its history.
func (b *builder) lookups() {
	all := &b.r.Lookups
	all.ByKind = make(map[string]result.LookupCount)
	for i, kind := range result.LookupKinds {
		p := promptPurposes[i]
		n := b.n.Lookups[p]
		if p > workloads.ForReread && n == (result.LookupCount{}) {
			continue // only some loads have these kinds
		}
		all.ByKind[kind] = n
		all.Hits += n.Hits
		all.Misses += n.Misses
		all.NotYetWritten += n.NotYetWritten
	}
}

// prompt counts tokens. Parts that no prompt had are left out.
func (b *builder) prompt() {
	if b.r.CompletionUnit != result.UnitRequest {
		return
	}
	all := &result.Prompt{Requests: b.n.PromptRequests, RequestsHit: b.n.PromptHits,
		ByKind: make(map[string]result.PromptTokens)}
	for i, p := range promptPurposes {
		n := b.n.Prompt[p]
		if n.Tokens == 0 {
			continue
		}
		all.Add(n)
		all.ByKind[result.PromptKinds[i]] = n
	}
	b.r.Prompt = all
}

// blocks counts the blocks of a block trace. The ideal is unknown if it is unknown for one request.
func (b *builder) blocks() {
	c := b.n.Blocks
	if c.Requests == 0 {
		return
	}
	c.PrefixHitRatio = units.Ratio(b.n.BlocksFound, c.Requests)
	if b.n.NotKnown == 0 {
		c.IdealHits = &b.n.BlocksIdeal
	}
	b.r.BlockCache = &c
}

// compared adds the comparison of the policy with the default policy.
func (b *builder) compared() {
	if c := b.n.Compared; c.Lookups > 0 && b.r.Policy != nil {
		p := *b.r.Policy
		p.Compared = &c
		b.r.Policy = &p
	}
}

// tiers adds the counts of each level to its description.
func (b *builder) tiers() {
	known := b.r.Tiers
	b.r.Tiers = []result.Tier{}
	for l, n := range b.n.Tiers {
		level := tiers.Kind(l)
		i := slices.IndexFunc(known, func(t result.Tier) bool { return t.Level == level.String() })
		if i < 0 {
			continue
		}
		t := known[i]
		add(&t, &n)
		t.RoomNS += int64(b.info.Room[l])
		b.r.Tiers, b.levels = append(b.r.Tiers, t), append(b.levels, level)
	}
}

// load adds up the offered requests and their outcome, by class and in total.
func (b *builder) load() {
	known, load := b.r.Load, make(map[string]result.ClassOutcome)
	b.r.Load = load
	if b.info.LoadUnknown || b.r.CompletionUnit == result.UnitOperation {
		return
	}
	var all result.ClassOutcome
	for c, completed := range b.n.Completed {
		o := known[workloads.Class(c).String()]
		o.Completed, o.TargetP95NS = completed, int64(b.info.QoS[c].P95)
		load[workloads.Class(c).String()] = o
		add(&all, &o)
		all.OldestQueuedAgeS = larger(all.OldestQueuedAgeS, o.OldestQueuedAgeS)
		all.OldestInFlightAgeS = larger(all.OldestInFlightAgeS, o.OldestInFlightAgeS)
	}
	all.TargetP95NS, all.Late = 0, 0 // classes have their own targets
	load["total"] = all
}

// larger returns the larger number. nil is unknown and smaller than any number.
func larger(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// histograms puts whole distributions into the result, so that the distributions of several ranks or
// trials can be added later: percentiles cannot be added.
func (b *builder) histograms() {
	b.r.Histograms = make(map[string]result.HistogramData)
	for name, h := range b.hists {
		b.r.Histograms[name] = h.Encode()
	}
}

// errors copies the failure table, which has the failures of the whole run.
func (b *builder) errors() {
	f := &b.rec.failures
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := []result.ErrorCount{}
	for k, n := range f.by {
		k.Count = n
		counts = append(counts, k)
	}
	b.r.Errors, b.r.ErrorSamples = counts, append([]result.ErrorSample{}, f.first...)
	b.r.Requests.FailedOperations = f.total.Load()
	b.r.Requests.FailedInWindow = b.rec.window.failed.Load()
	b.failedAround = b.rec.around.failed.Load()
}

// timeline makes the arrays, unless nothing was counted at all. They cover the window; the last
// interval may be shorter. Gauges are unknown before their first reading.
func (b *builder) timeline() {
	tl := &b.intervals
	counted := func(v bucket) bool { return v.n != bucket{}.n }
	if b.window <= 0 || !slices.ContainsFunc(tl.buckets, counted) {
		return
	}
	// Samples at the very end of the window belong to its last interval. at also doubles the interval
	// as often as the window needs, if all shards ended early.
	last := tl.at(tl.origin + b.window - 1)
	n := int((b.window-1)/tl.interval) + 1
	buckets := tl.buckets[:n]
	for _, v := range tl.buckets[n:] {
		last.join(v)
	}
	for i, v := range buckets[1:] {
		if v.gauge == nil {
			buckets[i+1].gauge = buckets[i].gauge // a reading holds until the next
		}
	}
	sums := func(at int) []int64 {
		return series(buckets, func(v bucket) int64 { return v.n[at] })
	}
	readings := func(value func(*Gauge) int64) []*int64 {
		return series(buckets, func(v bucket) *int64 {
			if v.gauge == nil {
				return nil
			}
			return new(value(v.gauge))
		})
	}
	out := &result.Timeline{
		IntervalNS: int64(tl.interval),
		LastNS:     int64(b.window - time.Duration(n-1)*tl.interval),
		ReadBytes:  make(map[string][]int64), WriteBytes: make(map[string][]int64),
		EvictedBytes: make(map[string][]int64), DemotedBytes: make(map[string][]int64),
		TierUsedBytes: make(map[string][]*int64), TimesUS: make(map[string]tracing.Series),
		Requests: sums(bucketRequests),
		Queued:   readings(func(g *Gauge) int64 { return g.Queued }),
		InFlight: readings(func(g *Gauge) int64 { return g.InFlight }),
	}
	if b.n.Blocks.Requests > 0 {
		out.Blocks, out.BlockHits = sums(bucketBlocks), sums(bucketHits)
		out.BlockIdeal = series(buckets, func(v bucket) *int64 {
			if v.n[bucketUnknown] > 0 {
				return nil
			}
			return new(v.n[bucketIdeal])
		})
	}
	for what, place := range timedHists {
		rows := series(buckets, func(v bucket) map[int]int64 {
			counts := map[int]int64{}
			if v.times[what] != nil {
				for k, n := range v.times[what] {
					if n > 0 {
						counts[k] = int64(n)
					}
				}
			}
			return counts
		})
		if g, ok := tracing.NewSeries(rows); ok {
			out.TimesUS[histNames[place]] = g
		}
	}
	for _, l := range b.levels {
		name := l.String()
		out.ReadBytes[name] = sums(bucketBytes(l, tiers.Read))
		out.WriteBytes[name] = sums(bucketBytes(l, tiers.Write))
		out.EvictedBytes[name] = sums(bucketEvicted + int(l))
		out.DemotedBytes[name] = sums(bucketDemoted + int(l))
		out.TierUsedBytes[name] = readings(func(g *Gauge) int64 { return g.Bytes[l] })
	}
	b.r.Timeline = out
}

// series returns one value of each bucket.
func series[T any](buckets []bucket, value func(bucket) T) (all []T) {
	for _, b := range buckets {
		all = append(all, value(b))
	}
	return all
}

// contextTokens are the context lengths whose load time every result has.
var contextTokens = [...]int{8 << 10, 32 << 10, 128 << 10}

// loads returns how many bytes a prompt of this many tokens reads if all of it is found.
func (in *Info) loads(tokens int) (bytes int64) {
	if len(in.Tails) == 0 {
		return in.Sizer.Bytes(tokens)
	}
	size := in.Sizer.Bytes(in.ObjectTokens)
	for n := range tokens / in.ObjectTokens {
		bytes += in.Tails.Of(size, n+1)
	}
	return bytes
}

// contexts returns the contexts whose load time is derived later, from the read rate of single
// entries on the slowest level.
func (b *builder) contexts() []result.ContextLoad {
	out := []result.ContextLoad{}
	if len(b.levels) == 0 || b.info.Sizer.BytesPerToken == 0 {
		return out
	}
	for _, tokens := range contextTokens {
		out = append(out, result.ContextLoad{Tokens: int64(tokens), Bytes: b.info.loads(tokens),
			RecomputeNS: b.recompute(tokens)})
	}
	return out
}

// Info is the engine's facts about one trial. [Build] makes a Result from them and from the
// Recorder's counts, and uses nothing else: no clock, no file, no system call.
//
// The engine fills these parts of the Result, and Build adds the counts: Load with the offered and
// unfinished requests of each class, Tiers with each tier's description and content, Harness with
// the process's resources, DeviceCounters with the kernel's counters, Simulation with the model and
// the costs. Build may make Status worse, and adds the rank to the Seed. Warnings come before its
// own warnings, TraceWarnings after them.
type Info struct {
	result.Result
	TraceWarnings []string

	Sizer model.Sizer
	// Tails are the parts that a prompt reads of objects of ObjectTokens tokens.
	Tails        tiers.Tails
	ObjectTokens int
	QoS          [workloads.NumClasses]workloads.QoS

	// Cost is the cost of computing tokens that were not found; the zero Cost is free. Computing is
	// what the server did in the window. ContextWindow is the longest prompt of
	// the model in tokens, 0 = unknown.
	Cost          compute.Cost
	Computing     compute.Work
	ContextWindow int

	// Times are distributions that only some runs have, of requests to an object store and of
	// flushes, by their names in results.
	Times result.Histograms

	// MediumBusy is the time of the window in which a simulated medium moved bytes, the busier of two.
	MediumBusy time.Duration

	// Room are the workers' waits for capacity of each tier that are not of an operation.
	Room [tiers.NumKinds]time.Duration

	LoadUnknown bool // the number of offered requests is unknown
}

// builder makes the sections of r, one method each. Later methods read sections of earlier ones: the
// simulation's reads the load's, and the judgements read all the others.
type builder struct {
	rec    *Recorder
	info   *Info
	r      *result.Result // info's own
	window time.Duration
	levels []tiers.Kind // existing levels, fastest first

	// All shards together.
	n         counters
	hists     result.Histograms // by name
	oldest    int64             // as in shard
	intervals timeline
	parts     [][tiers.NumOps]result.RootTraffic

	failedAround int64 // failed operations before and after the window
}

// newBuilder adds up the shards, locking one at a time. If the Recorder is in use, the shards may
// be of different times, but a sample is never counted in part.
func newBuilder(info *Info, rec *Recorder) *builder {
	b := &builder{rec: rec, info: info, r: &info.Result, hists: make(result.Histograms)}
	rec.each(b.add)
	maps.Copy(b.hists, info.Times)
	if start, end := rec.Window(); end != workloads.Never {
		b.window = max(end-start, 0)
	}
	return b
}

// add adds a shard. HDR histograms of equal range add exactly.
func (b *builder) add(s *shard) {
	add(&b.n, &s.n)
	for _, u := range s.unsettled { // a copy: what never ended is still in flight
		b.n.settle(&u, cutBytes)
	}
	if b.parts == nil {
		b.parts = make([][tiers.NumOps]result.RootTraffic, len(s.parts))
	}
	for i := range s.parts {
		for op := range tiers.NumOps {
			add(&b.parts[i][op], &s.parts[i][op])
		}
	}
	b.oldest = max(b.oldest, s.oldest)
	b.intervals.merge(&s.timeline)
	for place, name := range histNames {
		if h := s.hists[place]; h != nil && b.hists[name] == nil {
			b.hists[name] = result.NewHistogram(result.HistogramUnit(name))
		}
		b.hists[name].Merge(s.hists[place])
	}
}

// perSecond returns n ÷ window, nil for an empty window: a trial that ended before its window
// opened has no rates.
func (b *builder) perSecond(n int64) *float64 { return units.Ratio(n, b.window.Seconds()) }
