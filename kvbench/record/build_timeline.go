package record

import (
	"kvbench/kvbench/result"
	"kvbench/tiers"
)

// timeline makes the arrays; nil when nothing was recorded at all.
func (b *builder) timeline() *result.Timeline {
	tl := &b.t.timeline
	if tl.interval <= 0 || b.window <= 0 {
		return nil
	}
	// As many intervals as the window has: what completed at its very end belongs to the last one.
	for (b.window+tl.interval-1)/tl.interval > maxBuckets {
		tl.double()
	}
	n := int((b.window + tl.interval - 1) / tl.interval)
	buckets := make([]bucket, n)
	for i, v := range tl.buckets {
		buckets[min(i, n-1)].join(v)
	}
	out := &result.Timeline{
		IntervalS: tl.interval.Seconds(), IntervalNS: int64(tl.interval), LastNS: int64(b.window) - int64(n-1)*int64(tl.interval),
		ReadBytes: make(map[string][]int64), WriteBytes: make(map[string][]int64), TierUsedBytes: make(map[string][]*int64),
		EvictedBytes: make(map[string][]int64), DemotedBytes: make(map[string][]int64),
		Requests: make([]int64, n), Queued: make([]*int64, n), InFlight: make([]*int64, n),
	}
	for i, v := range buckets {
		out.Requests[i] = v[bucketRequests]
	}
	if b.sum(blockSum(blockRequests)) > 0 {
		out.Blocks, out.BlockHits, out.BlockIdeal = make([]int64, n), make([]int64, n), make([]*int64, n)
		for i, v := range buckets {
			out.Blocks[i], out.BlockHits[i] = v[bucketBlocks], v[bucketHits]
			if v[bucketUnknown] == 0 {
				out.BlockIdeal[i] = new(v[bucketIdeal])
			}
		}
	}
	readings := b.rec.gauges.read(tl.interval, n)
	for i, g := range readings {
		if g.known {
			out.Queued[i], out.InFlight[i] = new(g.Queued), new(g.InFlight)
		}
	}
	for l := range tiers.NumKinds {
		if !b.exists[l] {
			continue
		}
		read, write, used := make([]int64, n), make([]int64, n), make([]*int64, n)
		evicted, demoted := make([]int64, n), make([]int64, n)
		for i, v := range buckets {
			read[i], write[i] = v[bucketBytes(l, tiers.Read)], v[bucketBytes(l, tiers.Write)]
			evicted[i], demoted[i] = v[bucketEvicted+int(l)], v[bucketDemoted+int(l)]
			if g := readings[i]; g.known {
				used[i] = new(g.Bytes[l])
			}
		}
		out.ReadBytes[l.String()], out.WriteBytes[l.String()], out.TierUsedBytes[l.String()] = read, write, used
		out.EvictedBytes[l.String()], out.DemotedBytes[l.String()] = evicted, demoted
	}
	return out
}
