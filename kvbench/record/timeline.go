package record

import (
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers"
)

// A timeline is a list of buckets of equal length from the window's opening. When the run outlasts
// maxBuckets of them, pairs are joined and the interval doubles, so memory stays bounded and
// nothing is lost. 4096 buckets draw a line that no page has more points for, and take half a
// megabyte in a shard; 10 ms is the shortest interval in which a drive moves enough to be a rate.
const (
	maxBuckets      = 4096
	minInterval     = 10 * time.Millisecond
	defaultInterval = time.Second
)

// TimelineInterval returns the first interval: a second; for shorter windows a hundredth of it, at
// least 10 ms. A window of unknown length starts with 10 ms and doubles on its way.
func TimelineInterval(window time.Duration) time.Duration {
	if window <= 0 || window > never/2 {
		return minInterval
	}
	return min(max(window/100, minInterval), defaultInterval)
}

// bucket is what happened in one interval: numbers, and the last reading of what cannot be summed.
type bucket struct {
	n     [numBucketCounters]int64
	gauge *Gauge // nil: none
}

const (
	bucketRequests = iota // completed
	bucketBlocks          // asked for, of block traces, as the three below
	bucketHits            //
	bucketIdeal           //
	bucketUnknown         // blocks of requests whose ideal nobody knows
	bucketMoved           // bytes, by level and operation

	bucketEvicted = bucketMoved + int(tiers.NumKinds)*int(tiers.NumOps) // bytes, by level
	// bytes, out of the level
	bucketDemoted     = bucketEvicted + int(tiers.NumKinds)
	numBucketCounters = bucketDemoted + int(tiers.NumKinds)
)

// bucketBytes is the place in a bucket of the bytes that a level moved.
func bucketBytes(l tiers.Kind, op tiers.Op) int {
	return bucketMoved + int(l)*int(tiers.NumOps) + int(op)
}

// join adds what another shard counted in the same interval, or the same one in the next.
func (b *bucket) join(o bucket) {
	for i, n := range o.n {
		b.n[i] += n
	}
	if o.gauge != nil {
		b.gauge = o.gauge
	}
}

// timeline is one shard's part, or all of them. Readings stand in the first shard.
type timeline struct {
	origin   time.Duration
	interval time.Duration
	buckets  []bucket
}

// at returns the bucket of a moment, making it when needed. What comes at the same moment as the
// opening, or in virtual time before it, belongs to the first.
func (t *timeline) at(at time.Duration) *bucket {
	at = max(at-t.origin, 0)
	for at/t.interval >= maxBuckets {
		t.double()
	}
	n := int(at / t.interval)
	for len(t.buckets) <= n {
		t.buckets = append(t.buckets, bucket{})
	}
	return &t.buckets[n]
}

// double halves the number of buckets by joining neighbours.
func (t *timeline) double() {
	for i, b := range t.buckets {
		if i%2 == 0 {
			t.buckets[i/2] = b
		} else {
			t.buckets[i/2].join(b)
		}
	}
	t.buckets = t.buckets[:(len(t.buckets)+1)/2]
	t.interval *= 2
}

// merge adds o, which began at the same moment with the same interval and may have doubled more or
// less often.
func (t *timeline) merge(o *timeline) {
	if t.interval == 0 {
		t.origin, t.interval = o.origin, o.interval
	}
	for t.interval < o.interval {
		t.double()
	}
	for i, b := range o.buckets {
		t.at(t.origin + time.Duration(i)*o.interval).join(b)
	}
}

// timeline makes the arrays, unless nothing was counted at all. They have as many intervals as the
// window: the last may be shorter, and readings are unknown before the first.
func (b *builder) timeline() {
	tl := &b.all.timeline
	counted := func(v bucket) bool { return v.n != bucket{}.n }
	if b.window <= 0 || !slices.ContainsFunc(tl.buckets, counted) {
		return
	}
	// As many intervals as the window has: what completed at its very end belongs to the last one,
	// and shards that ended early have doubled less often than the whole has to.
	for b.window > maxBuckets*tl.interval {
		tl.double()
	}
	n := int((b.window + tl.interval - 1) / tl.interval)
	buckets := make([]bucket, n)
	for i, v := range tl.buckets {
		buckets[min(i, n-1)].join(v)
	}
	for i, v := range buckets[1:] {
		if v.gauge == nil {
			buckets[i+1].gauge = buckets[i].gauge // a reading holds until the next
		}
	}
	sums := func(at int) []int64 {
		return series(buckets, func(v bucket) int64 { return v.n[at] })
	}
	readings := func(of func(*Gauge) int64) []*int64 {
		return series(buckets, func(v bucket) *int64 {
			if v.gauge == nil {
				return nil
			}
			return new(of(v.gauge))
		})
	}
	out := &result.Timeline{
		IntervalS: tl.interval.Seconds(), IntervalNS: int64(tl.interval),
		LastNS:    int64(b.window - time.Duration(n-1)*tl.interval),
		ReadBytes: make(map[string][]int64), WriteBytes: make(map[string][]int64),
		EvictedBytes: make(map[string][]int64), DemotedBytes: make(map[string][]int64),
		TierUsedBytes: make(map[string][]*int64),
		Requests:      sums(bucketRequests),
		Queued:        readings(func(g *Gauge) int64 { return g.Queued }),
		InFlight:      readings(func(g *Gauge) int64 { return g.InFlight }),
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

// series is one value of each bucket.
func series[T any](buckets []bucket, of func(bucket) T) (all []T) {
	for _, b := range buckets {
		all = append(all, of(b))
	}
	return all
}
