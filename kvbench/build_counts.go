package kvbench

import (
	"time"

	"kvbench/tiers"
	"kvbench/workloads"
)

// lookupKinds names the decisions that are lookups. Writing an entry and reading it again are none.
// They are in the order of LookupKinds, which names them in the result.
var lookupKinds = [len(LookupKinds)]workloads.Purpose{
	workloads.ForPrefix, workloads.ForHistory, workloads.ForProbe, workloads.ForBlock, workloads.ForRetrieval,
}

func (b *builder) counts(r *Result) {
	t := b.t
	q := RequestTotals{
		Completed: t.requests, Failed: t.failedRequests, ContextTokens: t.contextTokens, GeneratedTokens: t.tokens,
		StorageLatencyNS: int64(t.storage), GenerationLatencyNS: int64(t.generation),
		FailedOperations: b.rec.Failed(), OldestCancelledNS: int64(t.oldest),
	}
	for l := range tiers.NumLevels {
		for op := range tiers.NumOps {
			q.Operations += t.ops[l][op].n
			q.CancelledOperations += t.cancelled[l][op].n
			q.RetriedOperations += t.retries[l][op]
		}
		r.FirstReads.Operations += t.firsts[l].n
		r.FirstReads.Bytes += t.firsts[l].bytes
		r.ReReads.Operations += t.rereads[l].n
		r.ReReads.Bytes += t.rereads[l].bytes
	}
	r.Requests = q
	r.UniqueBytesRead = r.FirstReads.Bytes

	r.Lookups.ByKind = make(map[string]LookupCount)
	for i, purpose := range lookupKinds {
		n := b.lookup(purpose)
		if purpose > workloads.ForReread && n == (LookupCount{}) {
			continue // of loads that other runs do not have
		}
		r.Lookups.ByKind[LookupKinds[i]] = n
		r.Lookups.Hits += n.Hits
		r.Lookups.Misses += n.Misses
		r.Lookups.NotYetWritten += n.NotYetWritten
	}
	r.Lookups.HitRate = ratio(float64(r.Lookups.Hits), float64(r.Lookups.Hits+r.Lookups.Misses))
}

func (b *builder) lookup(p workloads.Purpose) LookupCount {
	v := b.t.lookups[p]
	n := LookupCount{
		Hits: v[Hit] + v[Pending], Pending: v[Pending], Misses: v[Miss] + v[Gone], Gone: v[Gone],
		NotYetWritten: v[NotYetWritten],
	}
	n.HitRate = ratio(float64(n.Hits), float64(n.Hits+n.Misses))
	return n
}

func (b *builder) tiers(r *Result) {
	r.Tiers = []TierResult{}
	for l := range tiers.NumLevels {
		if !b.exists[l] {
			continue
		}
		t := TierResult{
			Level: l.String(),
			Read:  b.traffic(l, tiers.Read), Write: b.traffic(l, tiers.Write),
			DemotedOut: entryCount(b.t.demotedFrom[l]), DemotedIn: entryCount(b.t.demotedTo[l]),
			Evicted: entryCount(b.t.evictions[l]), Deleted: entryCount(b.t.deletions[l]),
		}
		if g := b.gauge(l); g != nil {
			t.Description, t.Entries, t.UsedBytes, t.PeakBytes, t.WasteBytes = g.Description, g.Entries, g.Bytes, g.Peak, g.Waste
			if g.Capacity > 0 {
				t.CapacityBytes = new(g.Capacity)
			}
		}
		r.Tiers = append(r.Tiers, t)
	}
}

func (b *builder) gauge(l tiers.Level) *TierInfo {
	for i := range b.info.Tiers {
		if b.info.Tiers[i].Level == l {
			return &b.info.Tiers[i]
		}
	}
	return nil
}

func (b *builder) traffic(l tiers.Level, op tiers.Op) TierTraffic {
	ops, bytes, device := b.t.ops[l][op], b.levelBytes(l, op), b.t.device[l][op]
	return TierTraffic{
		Operations: ops.n, Bytes: bytes, DemotionBytes: b.t.bytes[l][op][tiers.Evict],
		BytesPerSecond: b.perSecond(float64(bytes)), Cancelled: b.t.cancelled[l][op].n, DeviceNS: int64(device),
		NSPerMiB: ratio(float64(device), float64(ops.bytes)/bytesPerMiB),
	}
}

func entryCount(t tally) EntryCount { return EntryCount{Entries: t.n, Bytes: t.bytes} }

// load tells what was offered and what became of it, by class and in total.
func (b *builder) load(r *Result) {
	r.Load = make(map[string]ClassOutcome)
	var all ClassOutcome
	var oldestQueued, oldestInFlight time.Duration
	for c := range workloads.Class(workloads.NumClasses) {
		o := ClassOutcome{Completed: b.t.byClass[c]}
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
