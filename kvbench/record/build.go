package record

import (
	"cmp"
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
	"kvbench/workloads/model"
)

// Info is what the engine knows about one trial beside what the Recorder counted. [Build] turns
// both into a Result and touches nothing else: no clock, no file, no system call.
//
// The engine fills the sections of the Result itself; Build adds the numbers. It makes Status worse
// where the counts ask for it, and adds the rank to the Seed. Of Load it takes what each class was
// offered and what has not completed, of Tiers what a tier is and holds, of Harness what the
// process took, of DeviceWitness what the kernel counted, of Simulation the model and the costs.
// Warnings come first, TraceWarnings beside the trace.
type Info struct {
	result.Result
	TraceWarnings []string

	Sizer   model.Sizer
	Profile string // latency, throughput: decides the criteria of storage_health
	QoS     [workloads.NumClasses]workloads.QoS

	// For how long of the window the storage device had requests, and the simulated one's medium
	// bytes.
	DeviceBusy, MediumBusy time.Duration
}

// Input is what a recorded source says of its file, as the result keeps it.
func Input(r workloads.TraceReport) *result.Input {
	in := &result.Input{Rows: r.Rows, Failed: r.Failed, Malformed: r.Malformed, Skipped: r.Skipped,
		Cycles: int64(r.Cycles), Tokenizer: r.Tokenizer}
	for _, p := range r.First {
		in.Problems = append(in.Problems, p.Error())
	}
	return in
}

// Build turns what the engine knows and what the Recorder counted into the trial's Result, which
// takes over what info points to. Its only effect is the Result; the Recorder must be at rest for
// the numbers of different sections to agree.
func Build(info Info, rec *Recorder) *result.Result {
	b := newBuilder(&info, rec)
	b.describe()
	b.tiers()
	b.requests()
	b.lookups()
	b.blocks()
	b.latency()
	b.load()
	b.python()
	b.harness()
	b.witness()
	b.ceiling()
	b.simulation()
	b.timeline()
	b.histograms()
	b.errors()
	b.warnings()
	b.validation()
	b.status()
	return b.r
}

// builder makes the sections of r, one method each. Later ones read what earlier ones made: the
// keys of the Python benchmark are made of ours, the simulation's of the load's, and the judgements
// come last, because they are about all the rest.
type builder struct {
	rec    *Recorder
	all    *shard                       // all shards together
	n      *counters                    // its own, as the next
	hists  map[string]*result.Histogram // of all that has one
	info   *Info
	r      *result.Result // info's own
	window time.Duration
	levels []tiers.Kind // that exist, fastest first
}

// newBuilder adds the shards up.
func newBuilder(info *Info, rec *Recorder) *builder {
	all := rec.merge()
	b := &builder{
		rec: rec, all: all, n: &all.n, info: info, r: &info.Result,
		hists: make(map[string]*result.Histogram),
	}
	for i, h := range all.hists[:histRound] {
		if h != nil {
			b.hists[histNames[i]] = h
		}
	}
	if start, end := rec.Window(); end != never {
		b.window = max(end-start, 0)
	}
	return b
}

// perSecond returns n ÷ window, nil for an empty window: a trial that ended before its window
// opened has no rates.
func (b *builder) perSecond(n int64) *float64 { return units.Ratio(n, b.window.Seconds()) }

// describe completes what the engine knows. Lists are copied, because the engine keeps its own, and
// are never null in the JSON.
func (b *builder) describe() {
	r := b.r
	r.SchemaVersion = result.SchemaVersion
	r.Seed += uint64(r.Rank)
	r.CompletionUnit = cmp.Or(r.CompletionUnit, result.UnitRequest)
	r.WindowNS = int64(b.window)
	if r.Division == result.DivisionClosed {
		r.Notice = result.ClosedNotice
	}
	r.Model.RankBytesPerToken = b.info.Sizer.Bytes(1)
	r.Parameters = append([]result.Parameter{}, r.Parameters...)
	r.DiffersFromClosed = append([]result.Difference{}, r.DiffersFromClosed...)
	r.Warnings = append([]string{}, r.Warnings...)
}

// requests are the exact counts of the window. Failures are those of the whole run, because a run
// never loses an error.
func (b *builder) requests() {
	r := b.r
	r.Requests, r.FirstReads, r.ReReads = b.n.Requests, b.n.FirstReads, b.n.ReReads
	r.Requests.FailedOperations, r.Requests.OldestCancelledNS = b.rec.Failed(), b.all.oldest
	r.UniqueBytesRead = r.FirstReads.Bytes
}

// lookupPurposes are the decisions that are lookups, in the order of result.LookupKinds: writing an
// entry and reading it again are none.
var lookupPurposes = [len(result.LookupKinds)]workloads.Purpose{
	workloads.ForPrefix, workloads.ForHistory, workloads.ForDecodeRead, workloads.ForBlock,
	workloads.ForRetrieval,
}

// lookups makes hit rates of decisions. A pending entry is a hit: it need not be computed again. A
// turn that overtook the one before it is neither, since no cache could have had its history.
func (b *builder) lookups() {
	all := &b.r.Lookups
	all.ByKind = make(map[string]result.LookupCount)
	for i, p := range lookupPurposes {
		n := b.n.Lookups[p]
		n.HitRate = units.Ratio(n.Hits, n.Hits+n.Misses)
		if p > workloads.ForReread && n == (result.LookupCount{}) {
			continue // of loads that other runs do not have
		}
		all.ByKind[result.LookupKinds[i]] = n
		all.Hits += n.Hits
		all.Misses += n.Misses
		all.NotYetWritten += n.NotYetWritten
	}
	all.HitRate = units.Ratio(all.Hits, all.Hits+all.Misses)
}

// blocks makes the hit ratios of a block trace. The ideal is unknown as soon as it is of one
// request.
func (b *builder) blocks() {
	c := b.n.Blocks
	if c.Requests == 0 {
		return
	}
	c.Reads = b.n.ByPurpose[workloads.ForBlock][tiers.Read].BlockMoves
	c.Writes = b.n.ByPurpose[workloads.ForBlock][tiers.Write].BlockMoves
	c.HitRatio = units.Ratio(c.Hits, c.Blocks)
	c.PrefixHitRatio = units.Ratio(b.n.BlocksFound, c.Requests)
	c.TokenHitRatio = units.Ratio(c.HitTokens, c.Tokens)
	if b.n.NotKnown == 0 {
		c.IdealHits = &b.n.BlocksIdeal
		c.IdealHitRatio = units.Ratio(b.n.BlocksIdeal, c.Blocks)
	}
	b.r.BlockCache = &c
}

// tiers joins what is known of each level with what it moved.
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
		t.Read, t.Write = n.Read, n.Write
		t.DemotedOut, t.DemotedIn, t.Evicted, t.Deleted = n.DemotedOut, n.DemotedIn, n.Evicted,
			n.Deleted
		// Bytes of chunks over the window; the time of completed operations for their own bytes.
		for op, rates := range [tiers.NumOps]*result.TierTraffic{&t.Read, &t.Write} {
			done := float64(b.n.DoneBytes[l][op]) / float64(units.MiB)
			rates.BytesPerSecond = b.perSecond(rates.Bytes)
			rates.NSPerMiB = units.Ratio(rates.DeviceNS, done)
		}
		b.r.Tiers, b.levels = append(b.r.Tiers, t), append(b.levels, level)
	}
}

// load adds up what was offered and what became of it, by class and in total.
func (b *builder) load() {
	known, load := b.r.Load, make(map[string]result.ClassOutcome)
	var all result.ClassOutcome
	for c, completed := range b.n.Completed {
		o := known[workloads.Class(c).String()]
		o.Completed = completed
		all.Add(o)
		o.Derive()
		load[workloads.Class(c).String()] = o
	}
	all.Derive()
	load["total"] = all
	b.r.Load = load
}

// histograms puts the distributions into the result as a whole, so that those of several ranks or
// trials can be added up later: percentiles cannot.
func (b *builder) histograms() {
	b.r.Histograms = make(map[string]result.HistogramData)
	for name, h := range b.hists {
		d, err := h.Encode()
		if err != nil {
			b.warn("histogram %s is missing: %v", name, err)
			continue
		}
		b.r.Histograms[name] = d
	}
}
