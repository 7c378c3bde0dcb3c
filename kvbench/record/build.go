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

func (b *builder) sum(c counter) int64 { return b.n.sum[c] }

// moved returns the bytes that a level moved, demotions among them.
func (b *builder) moved(l tiers.Kind, op tiers.Op) int64 { return b.n.op[l][op][opMoved] }

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
	r.Requests = result.RequestTotals{
		Completed: b.sum(sumRequests), Failed: b.sum(sumFailedRequests),
		ContextTokens: b.sum(sumContextTokens), GeneratedTokens: b.sum(sumTokens),
		StorageLatencyNS: b.sum(sumStorageNS), GenerationLatencyNS: b.sum(sumGenerationNS),
		Operations: b.n.over(opDone), FailedOperations: b.rec.Failed(),
		RetriedOperations: b.n.over(opRetry), CancelledOperations: b.n.over(opCancelled),
		OldestCancelledNS: b.all.oldest,
	}
	for _, l := range b.n.level {
		r.FirstReads.Operations += l[levelFirst]
		r.FirstReads.Bytes += l[levelFirstBytes]
		r.ReReads.Operations += l[levelReread]
		r.ReReads.Bytes += l[levelRereadBytes]
	}
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
		of := func(r LookupResult) int64 { return b.n.lookup[p][r] }
		n := result.LookupCount{
			Hits: of(Hit) + of(Pending), Pending: of(Pending), Misses: of(Miss) + of(Gone),
			Gone:          of(Gone),
			NotYetWritten: of(NotYetWritten),
		}
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
	n := b.n.block
	if n[blockRequests] == 0 {
		return
	}
	moves := func(op tiers.Op) result.BlockMoves {
		return result.BlockMoves{Operations: b.n.moves[op][0], Blocks: b.n.moves[op][1]}
	}
	c := &result.BlockCache{
		Requests: n[blockRequests], Blocks: n[blocksAsked], Hits: n[blockHits],
		Pending: n[blockPending], Kept: n[blockKept], Tokens: n[blockTokens],
		HitTokens: n[blockHitTokens],
		Written:   n[blocksAsked] - n[blockHits] - n[blockKept], BytesSaved: n[blockHitBytes],
		HitRatio:       units.Ratio(n[blockHits], n[blocksAsked]),
		PrefixHitRatio: units.Ratio(n[blockFound], n[blockRequests]),
		TokenHitRatio:  units.Ratio(n[blockHitTokens], n[blockTokens]),
		Reads:          moves(tiers.Read), Writes: moves(tiers.Write),
	}
	if n[blockUnknown] == 0 {
		c.IdealHits = new(n[blockIdeal])
		c.IdealHitRatio = units.Ratio(n[blockIdeal], n[blocksAsked])
	}
	b.r.BlockCache = c
}

func (b *builder) tiers() {
	b.r.Tiers = []result.Tier{}
	for _, l := range b.levels {
		t := b.known[l.String()]
		t.Level = l.String()
		t.Read, t.Write = b.traffic(l, tiers.Read), b.traffic(l, tiers.Write)
		entries := func(n levelCounter) result.EntryCount {
			return result.EntryCount{Entries: b.n.level[l][n], Bytes: b.n.level[l][n+1]}
		}
		t.DemotedOut, t.DemotedIn = entries(levelDemotedOut), entries(levelDemotedIn)
		t.Evicted, t.Deleted = entries(levelEvicted), entries(levelDeleted)
		b.r.Tiers = append(b.r.Tiers, t)
	}
}

func (b *builder) traffic(l tiers.Kind, op tiers.Op) result.TierTraffic {
	n := b.n.op[l][op]
	return result.TierTraffic{
		Operations: n[opDone], Bytes: n[opMoved], DemotionBytes: n[opMovedDown],
		BytesPerSecond: b.perSecond(float64(n[opMoved])), Cancelled: n[opCancelled],
		DeviceNS: n[opDeviceNS],
		NSPerMiB: units.Ratio(n[opDeviceNS], float64(n[opDoneBytes])/float64(units.MiB)),
	}
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
		Completed: b.n.class[c], Started: q.Started, Failed: q.Failed, InFlight: q.InFlight,
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
