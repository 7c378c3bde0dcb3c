package record

import (
	"sync"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers"
)

// A series is a list of buckets of equal length from the window's opening. When the run outlasts
// maxBuckets of them, pairs are joined and the interval doubles, so memory stays bounded and
// nothing is lost.
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

// joined is a bucket that another of the same or of the following time can be put into.
type joined[T any] interface {
	*T
	join(T)
}

type series[T any, P joined[T]] struct {
	origin   time.Duration
	interval time.Duration
	buckets  []T
}

// at returns the bucket of a moment, making it when needed.
func (s *series[T, P]) at(at time.Duration) P {
	n := int(max(at-s.origin, 0) / s.interval)
	for n >= maxBuckets {
		s.double()
		n = int(max(at-s.origin, 0) / s.interval)
	}
	for len(s.buckets) <= n {
		s.buckets = append(s.buckets, *new(T))
	}
	return &s.buckets[n]
}

func (s *series[T, P]) double() {
	half := (len(s.buckets) + 1) / 2
	for i := range half {
		b := s.buckets[2*i]
		if 2*i+1 < len(s.buckets) {
			P(&b).join(s.buckets[2*i+1])
		}
		s.buckets[i] = b
	}
	s.buckets = s.buckets[:half]
	s.interval *= 2
}

// merge adds o, which began at the same moment with the same interval and may have doubled more or
// less often.
func (s *series[T, P]) merge(o *series[T, P]) {
	if len(o.buckets) == 0 {
		return
	}
	if s.interval == 0 {
		s.origin, s.interval = o.origin, o.interval
	}
	for s.interval < o.interval {
		s.double()
	}
	for i, b := range o.buckets {
		s.at(s.origin + time.Duration(i)*o.interval).join(b)
	}
}

// timeline is what one shard counted over time. The shard's mutex guards it.
type timeline = series[bucket, *bucket]

// bucket is what was counted in one interval.
type bucket [numBucketCounters]int64

const (
	bucketRequests = iota // completed
	bucketBlocks          // asked for, of block traces, as the three below
	bucketHits
	bucketIdeal
	bucketUnknown // blocks of requests whose ideal nobody knows
	bucketMoved   // bytes, by level and operation

	bucketEvicted = bucketMoved + int(tiers.NumKinds)*int(tiers.NumOps) // bytes, by level
	// bytes, out of the level
	bucketDemoted     = bucketEvicted + int(tiers.NumKinds)
	numBucketCounters = bucketDemoted + int(tiers.NumKinds)
)

// bucketBytes is the place of the bytes that a level moved.
func bucketBytes(l tiers.Kind, op tiers.Op) int {
	return bucketMoved + int(l)*int(tiers.NumOps) + int(op)
}

func (b *bucket) join(o bucket) { addTo(b[:], o[:]) }

// gauges is the series of readings: the last of each interval stays.
type gauges struct {
	mu sync.Mutex
	series[reading, *reading]
}

type reading struct {
	known bool
	Gauge
}

func (r *reading) join(later reading) {
	if later.known {
		*r = later
	}
}

func (g *gauges) open(origin, interval time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.origin, g.interval, g.buckets = origin, interval, nil
}

func (g *gauges) set(at time.Duration, v Gauge) {
	g.mu.Lock()
	defer g.mu.Unlock()
	*g.at(at) = reading{known: true, Gauge: v}
}

// read returns the readings by bucket of the given interval, which is the gauges' own times or
// divided by a power of two, with gaps filled by the reading before.
func (g *gauges) read(interval time.Duration, n int) []reading {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]reading, n)
	for i, b := range g.buckets {
		if !b.known || n == 0 {
			continue
		}
		// The reading was the last of its bucket.
		out[min(int((time.Duration(i+1)*g.interval-1)/interval), n-1)] = b
	}
	for i := 1; i < n; i++ {
		if !out[i].known {
			out[i] = out[i-1]
		}
	}
	return out
}

// timeline makes the arrays, unless nothing was recorded at all.
func (b *builder) timeline() {
	tl := &b.all.timeline
	if tl.interval <= 0 || b.window <= 0 {
		return
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
	sums := func(at int) []int64 {
		out := make([]int64, n)
		for i, v := range buckets {
			out[i] = v[at]
		}
		return out
	}
	gauges := b.rec.gauges.read(tl.interval, n)
	readings := func(of func(Gauge) int64) []*int64 {
		out := make([]*int64, n)
		for i, g := range gauges {
			if g.known {
				out[i] = new(of(g.Gauge))
			}
		}
		return out
	}
	out := &result.Timeline{
		IntervalS: tl.interval.Seconds(), IntervalNS: int64(tl.interval),
		LastNS:    int64(b.window) - int64(n-1)*int64(tl.interval),
		ReadBytes: make(map[string][]int64), WriteBytes: make(map[string][]int64),
		EvictedBytes: make(map[string][]int64), DemotedBytes: make(map[string][]int64),
		TierUsedBytes: make(map[string][]*int64),
		Requests:      sums(bucketRequests),
		Queued:        readings(func(g Gauge) int64 { return g.Queued }),
		InFlight:      readings(func(g Gauge) int64 { return g.InFlight }),
	}
	if b.n.block[blockRequests] > 0 {
		out.Blocks, out.BlockHits, out.BlockIdeal = sums(bucketBlocks), sums(bucketHits), make([]*int64, n)
		for i, v := range buckets {
			if v[bucketUnknown] == 0 {
				out.BlockIdeal[i] = new(v[bucketIdeal])
			}
		}
	}
	for _, l := range b.levels {
		name := l.String()
		out.ReadBytes[name] = sums(bucketBytes(l, tiers.Read))
		out.WriteBytes[name] = sums(bucketBytes(l, tiers.Write))
		out.EvictedBytes[name] = sums(bucketEvicted + int(l))
		out.DemotedBytes[name] = sums(bucketDemoted + int(l))
		out.TierUsedBytes[name] = readings(func(g Gauge) int64 { return g.Bytes[l] })
	}
	b.r.Timeline = out
}
