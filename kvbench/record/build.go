package record

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
)

// Build turns what the engine knows and what the Recorder counted into the trial's Result. It has
// no side effects; the Recorder must be at rest for the numbers of different sections to agree.
func Build(info Info, rec *Recorder) *result.Result {
	b := newBuilder(&info, rec)
	b.describe()
	b.requests()
	b.lookups()
	b.blocks()
	b.latency()
	b.load()
	b.tiers()
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

// builder makes the sections of r, one method each. Later ones read what earlier ones made.
type builder struct {
	rec    *Recorder
	all    *shard    // all shards together
	n      *counters // its own, as the next
	hists  *histograms
	info   *Info
	r      *result.Result // info's own
	window time.Duration
	known  map[string]result.Tier // by level: what is known without counting
	levels []tiers.Kind           // those that exist, fastest first
}

func newBuilder(info *Info, rec *Recorder) *builder {
	all := rec.merge()
	b := &builder{
		rec: rec, all: all, n: &all.n, hists: &all.hists, info: info, r: &info.Result,
		window: info.Window, known: make(map[string]result.Tier),
	}
	if start, end := rec.Window(); b.window <= 0 && end != never {
		b.window = max(end-start, 0)
	}
	for _, t := range info.Tiers {
		b.known[t.Level] = t
	}
	for l := range tiers.NumKinds {
		// A tier that moved bytes exists, even where the engine had no gauge of it.
		if _, ok := b.known[l.String()]; ok || b.moved(l, tiers.Read)+b.moved(l, tiers.Write) > 0 {
			b.levels = append(b.levels, l)
		}
	}
	return b
}

// moved returns the bytes that a level moved, demotions among them.
func (b *builder) moved(l tiers.Kind, op tiers.Op) int64 { return b.n.traffic(l, op).Bytes }

// perSecond returns n ÷ window, nil for an empty window.
func (b *builder) perSecond(n float64) *float64 { return units.Ratio(n, b.window.Seconds()) }

// tokenBytes returns the bytes of n tokens on this rank, 0 without a model.
func (b *builder) tokenBytes(n int64) int64 {
	if b.info.Sizer.BytesPerToken <= 0 {
		return 0
	}
	return b.info.Sizer.Bytes(int(n))
}

// describe makes what the engine knows fit for the JSON, in copies: the engine keeps its own.
func (b *builder) describe() {
	r := b.r
	r.SchemaVersion = result.SchemaVersion
	r.Seed += uint64(r.Rank)
	r.CompletionUnit = cmp.Or(r.CompletionUnit, result.UnitRequest)
	r.WindowNS = int64(b.window)
	if r.Division == result.DivisionClosed {
		r.Notice = result.ClosedNotice
	}
	r.Model.RankBytesPerToken = b.tokenBytes(1)
	r.Workload.PrefillRate = units.OrZero(units.Finite(r.Workload.PrefillRate))
	r.Parameters = append([]result.Parameter{}, r.Parameters...)
	for i, p := range r.Parameters {
		r.Parameters[i].Value = plain(p.Value)
	}
	r.DiffersFromClosed = append([]result.Difference{}, r.DiffersFromClosed...)
	for i, d := range r.DiffersFromClosed {
		r.DiffersFromClosed[i].Closed, r.DiffersFromClosed[i].Value = plain(d.Closed),
			plain(d.Value)
	}
	r.Warnings = append([]string{}, r.Warnings...)
	if p := r.Precondition; p != nil {
		c := *p
		c.LastRates = slices.DeleteFunc(slices.Clone(p.LastRates), func(v float64) bool {
			return units.Finite(v) == nil
		})
		c.Spread = units.OrZero(units.Finite(p.Spread))
		r.Precondition = &c
	}
}

// plain makes a value of a parameter fit for JSON: durations as Go writes them, no NaN.
func plain(v any) any {
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
	case fmt.Stringer:
		return v.String()
	}
	return v
}

func (b *builder) requests() {
	r := b.r
	r.Requests = b.n.Requests
	r.Requests.FailedOperations, r.Requests.OldestCancelledNS = b.rec.Failed(), b.all.oldest
	r.FirstReads.Operations, r.FirstReads.Bytes = b.n.FirstReads.Entries, b.n.FirstReads.Bytes
	r.ReReads.Operations, r.ReReads.Bytes = b.n.ReReads.Entries, b.n.ReReads.Bytes
	r.UniqueBytesRead = r.FirstReads.Bytes
}

// lookupPurposes are the decisions that are lookups, in the order of result.LookupKinds: writing an
// entry and reading it again are none.
var lookupPurposes = [len(result.LookupKinds)]workloads.Purpose{
	workloads.ForPrefix, workloads.ForHistory, workloads.ForDecodeRead, workloads.ForBlock,
	workloads.ForRetrieval,
}

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

func (b *builder) blocks() {
	c := b.n.Blocks
	if c.Requests == 0 {
		return
	}
	c.HitRatio = units.Ratio(c.Hits, c.Blocks)
	c.PrefixHitRatio = units.Ratio(b.n.BlocksFound, c.Requests)
	c.TokenHitRatio = units.Ratio(c.HitTokens, c.Tokens)
	if b.n.NotKnown == 0 {
		c.IdealHits = &b.n.BlocksIdeal
		c.IdealHitRatio = units.Ratio(b.n.BlocksIdeal, c.Blocks)
	}
	b.r.BlockCache = &c
}

func (b *builder) tiers() {
	b.r.Tiers = []result.Tier{}
	for _, l := range b.levels {
		t, known := b.n.Tiers[l], b.known[l.String()]
		t.Level, t.Description, t.CapacityBytes = l.String(), known.Description, known.CapacityBytes
		t.Entries, t.UsedBytes = known.Entries, known.UsedBytes
		t.PeakBytes, t.WasteBytes = known.PeakBytes, known.WasteBytes
		b.rates(&t.Read, b.n.DoneBytes[l][tiers.Read])
		b.rates(&t.Write, b.n.DoneBytes[l][tiers.Write])
		b.r.Tiers = append(b.r.Tiers, t)
	}
}

func (b *builder) rates(t *result.TierTraffic, done int64) {
	t.BytesPerSecond = b.perSecond(float64(t.Bytes))
	t.NSPerMiB = units.Ratio(t.DeviceNS, float64(done)/float64(units.MiB))
}

// load tells what was offered and what became of it, by class and in total.
func (b *builder) load() {
	b.r.Load = make(map[string]result.ClassOutcome)
	var all result.ClassOutcome
	for c := range workloads.Class(workloads.NumClasses) {
		o := b.outcome(c)
		all.Add(o)
		o.Derive()
		b.r.Load[c.String()] = o
	}
	all.Derive()
	b.r.Load["total"] = all
}

func (b *builder) outcome(c workloads.Class) result.ClassOutcome {
	q := b.info.Requests[c]
	o := result.ClassOutcome{
		Completed: b.n.Completed[c], Started: q.Started, Failed: q.Failed, InFlight: q.InFlight,
	}
	if q.InFlight > 0 {
		o.OldestInFlightAgeS = new(q.OldestInFlight.Seconds())
	}
	if int(c) >= len(b.info.LoadEnd) {
		return o
	}
	var start workloads.ClassLoad
	if int(c) < len(b.info.LoadStart) {
		start = b.info.LoadStart[c]
	}
	end := b.info.LoadEnd[c]
	o.Offered = end.Offered - start.Offered + start.Queued + q.Running
	o.OfferedBytes = b.tokenBytes(end.OfferedTokens - start.OfferedTokens)
	o.CarriedIn, o.Queued = start.Queued, end.Queued
	if end.Queued > 0 && end.Oldest != workloads.Never {
		o.OldestQueuedAgeS = new(max(b.info.LoadEndAt-end.Oldest, 0).Seconds())
	}
	return o
}

func (b *builder) histograms() {
	b.r.Histograms = make(map[string]result.HistogramData)
	for _, p := range b.hists.places() {
		if *p.at == nil {
			continue
		}
		d, err := (*p.at).Encode()
		if err != nil {
			b.warn("histogram %s is missing: %v", p.name, err)
			continue
		}
		b.r.Histograms[p.name] = d
	}
}
