package record

import (
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
)

// lookupKinds names the decisions that are lookups. Writing an entry and reading it again are none.
// They are in the order of LookupKinds, which names them in the result.
var lookupKinds = [len(result.LookupKinds)]workloads.Purpose{
	workloads.ForPrefix, workloads.ForHistory, workloads.ForDecodeRead, workloads.ForBlock, workloads.ForRetrieval,
}

func (b *builder) counts(r *result.Result) {
	n := &b.t.n
	r.Requests = result.RequestTotals{
		Completed: b.sum(sumRequests), Failed: b.sum(sumFailedRequests),
		ContextTokens: b.sum(sumContextTokens), GeneratedTokens: b.sum(sumTokens),
		StorageLatencyNS: b.sum(sumStorageNS), GenerationLatencyNS: b.sum(sumGenerationNS),
		Operations: n.over(opDone), FailedOperations: b.rec.Failed(), RetriedOperations: n.over(opRetry),
		CancelledOperations: n.over(opCancelled), OldestCancelledNS: b.t.oldest,
	}
	for _, l := range n.level {
		r.FirstReads.Operations += l[levelFirst]
		r.FirstReads.Bytes += l[levelFirstBytes]
		r.ReReads.Operations += l[levelReread]
		r.ReReads.Bytes += l[levelRereadBytes]
	}
	r.UniqueBytesRead = r.FirstReads.Bytes

	r.Lookups.ByKind = make(map[string]result.LookupCount)
	for i, purpose := range lookupKinds {
		n := b.lookup(purpose)
		if purpose > workloads.ForReread && n == (result.LookupCount{}) {
			continue // of loads that other runs do not have
		}
		r.Lookups.ByKind[result.LookupKinds[i]] = n
		r.Lookups.Hits += n.Hits
		r.Lookups.Misses += n.Misses
		r.Lookups.NotYetWritten += n.NotYetWritten
	}
	r.Lookups.HitRate = units.Ratio(r.Lookups.Hits, r.Lookups.Hits+r.Lookups.Misses)
}

func (b *builder) lookup(p workloads.Purpose) result.LookupCount {
	of := func(r LookupResult) int64 { return b.sum(lookupSum(p, r)) }
	n := result.LookupCount{
		Hits: of(Hit) + of(Pending), Pending: of(Pending), Misses: of(Miss) + of(Gone), Gone: of(Gone),
		NotYetWritten: of(NotYetWritten),
	}
	n.HitRate = units.Ratio(n.Hits, n.Hits+n.Misses)
	return n
}

func (b *builder) tiers(r *result.Result) {
	r.Tiers = []result.Tier{}
	for l := range tiers.NumKinds {
		if !b.exists[l] {
			continue
		}
		t := b.known[l.String()]
		t.Level = l.String()
		t.Read, t.Write = b.traffic(l, tiers.Read), b.traffic(l, tiers.Write)
		t.DemotedOut, t.DemotedIn = b.entries(l, levelDemotedOut), b.entries(l, levelDemotedIn)
		t.Evicted, t.Deleted = b.entries(l, levelEvicted), b.entries(l, levelDeleted)
		r.Tiers = append(r.Tiers, t)
	}
}

func (b *builder) traffic(l tiers.Kind, op tiers.Op) result.TierTraffic {
	n := b.t.n.op[l][op]
	return result.TierTraffic{
		Operations: n[opDone], Bytes: n[opMoved], DemotionBytes: n[opMovedDown],
		BytesPerSecond: b.perSecond(float64(n[opMoved])), Cancelled: n[opCancelled], DeviceNS: n[opDeviceNS],
		NSPerMiB: units.Ratio(float64(n[opDeviceNS]), float64(n[opDoneBytes])/bytesPerMiB),
	}
}

func (b *builder) entries(l tiers.Kind, n levelCounter) result.EntryCount {
	return result.EntryCount{Entries: b.t.n.level[l][n], Bytes: b.t.n.level[l][n+1]}
}

// load tells what was offered and what became of it, by class and in total.
func (b *builder) load(r *result.Result) {
	r.Load = make(map[string]result.ClassOutcome)
	var all result.ClassOutcome
	var oldestQueued, oldestInFlight time.Duration
	for c := range workloads.Class(workloads.NumClasses) {
		o := result.ClassOutcome{Completed: b.sum(classSum(c))}
		if int(c) < len(b.info.LoadEnd) {
			end := b.info.LoadEnd[c]
			var start workloads.ClassLoad
			if int(c) < len(b.info.LoadStart) {
				start = b.info.LoadStart[c]
			}
			o.Offered = end.Offered - start.Offered + start.Queued + b.info.Requests[c].Running
			o.OfferedBytes = b.tokenBytes(int(end.OfferedTokens - start.OfferedTokens))
			o.CarriedIn, o.Queued = start.Queued, end.Queued
			if end.Queued > 0 && end.Oldest != workloads.Never {
				age := max(b.info.LoadEndAt-end.Oldest, 0)
				o.OldestQueuedAgeS = new(age.Seconds())
				oldestQueued = max(oldestQueued, age)
			}
		}
		q := b.info.Requests[c]
		o.Started, o.Failed, o.InFlight = q.Started, q.Failed, q.InFlight
		if q.InFlight > 0 {
			o.OldestInFlightAgeS = new(q.OldestInFlight.Seconds())
			oldestInFlight = max(oldestInFlight, q.OldestInFlight)
		}
		o.Derive()
		b.loads[c] = o
		r.Load[c.String()] = o

		all.Offered += o.Offered
		all.OfferedBytes += o.OfferedBytes
		all.CarriedIn += o.CarriedIn
		all.Started += o.Started
		all.Completed += o.Completed
		all.Failed += o.Failed
		all.InFlight += o.InFlight
		all.Queued += o.Queued
	}
	if oldestQueued > 0 {
		all.OldestQueuedAgeS = new(oldestQueued.Seconds())
	}
	if oldestInFlight > 0 {
		all.OldestInFlightAgeS = new(oldestInFlight.Seconds())
	}
	all.Derive()
	r.Load["total"] = all
}
