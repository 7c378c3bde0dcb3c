package kvbench

import (
	"sync"
	"time"

	"kvbench/tiers"
)

// A timeline is a list of buckets of equal length from the window's opening. When the run outlasts maxBuckets of them,
// pairs are added up and the interval doubles, so memory stays bounded and nothing is lost.
const (
	maxBuckets      = 4096
	minInterval     = 10 * time.Millisecond
	defaultInterval = time.Second
)

// timelineInterval returns the first interval: a second; for shorter windows a hundredth of it, at least 10 ms. A window
// of unknown length starts with 10 ms and doubles on its way.
func timelineInterval(window time.Duration) time.Duration {
	if window <= 0 || int64(window) > never/2 {
		return minInterval
	}
	return min(max(window/100, minInterval), defaultInterval)
}

type timelineBucket struct {
	bytes    [tiers.NumLevels][tiers.NumOps]int64
	evicted  [tiers.NumLevels]int64 // bytes
	demoted  [tiers.NumLevels]int64 // bytes, out of the level
	requests int64
	blocks   blockTotals
}

func (b *timelineBucket) add(o timelineBucket) {
	for l := range b.bytes {
		for op := range b.bytes[l] {
			b.bytes[l][op] += o.bytes[l][op]
		}
		b.evicted[l] += o.evicted[l]
		b.demoted[l] += o.demoted[l]
	}
	b.requests += o.requests
	b.blocks.merge(o.blocks)
}

// timeline is one shard's part. The shard's mutex guards it.
type timeline struct {
	origin   time.Duration
	interval time.Duration
	buckets  []timelineBucket
}

// at returns the bucket of a moment, making it when needed.
func (t *timeline) at(at time.Duration) *timelineBucket {
	n := int(max(at-t.origin, 0) / t.interval)
	for n >= maxBuckets {
		t.double()
		n = int(max(at-t.origin, 0) / t.interval)
	}
	for len(t.buckets) <= n {
		t.buckets = append(t.buckets, timelineBucket{})
	}
	return &t.buckets[n]
}

func (t *timeline) double() {
	half := (len(t.buckets) + 1) / 2
	for i := range half {
		b := t.buckets[2*i]
		if 2*i+1 < len(t.buckets) {
			b.add(t.buckets[2*i+1])
		}
		t.buckets[i] = b
	}
	t.buckets = t.buckets[:half]
	t.interval *= 2
}

// merge adds o, which began at the same moment with the same interval and may have doubled more or less often.
func (t *timeline) merge(o timeline) {
	if len(o.buckets) == 0 {
		return
	}
	if t.interval == 0 {
		t.origin, t.interval = o.origin, o.interval
	}
	for t.interval < o.interval {
		t.double()
	}
	for i, b := range o.buckets {
		t.at(t.origin + time.Duration(i)*o.interval).add(b)
	}
}

// gauges is the timeline of readings: the last of each interval stays.
type gauges struct {
	mu       sync.Mutex
	origin   time.Duration
	interval time.Duration
	buckets  []gaugeBucket
}

type gaugeBucket struct {
	known bool
	Gauge
}

func (g *gauges) open(origin, interval time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.origin, g.interval, g.buckets = origin, interval, nil
}

func (g *gauges) set(at time.Duration, v Gauge) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := int(max(at-g.origin, 0) / g.interval)
	for n >= maxBuckets {
		g.double()
		n = int(max(at-g.origin, 0) / g.interval)
	}
	for len(g.buckets) <= n {
		g.buckets = append(g.buckets, gaugeBucket{})
	}
	g.buckets[n] = gaugeBucket{known: true, Gauge: v}
}

func (g *gauges) double() {
	half := (len(g.buckets) + 1) / 2
	for i := range half {
		b := g.buckets[2*i]
		if 2*i+1 < len(g.buckets) && g.buckets[2*i+1].known {
			b = g.buckets[2*i+1]
		}
		g.buckets[i] = b
	}
	g.buckets = g.buckets[:half]
	g.interval *= 2
}

// read returns the readings by bucket of the given interval, which is the gauges' own times or divided by a power of
// two, with gaps filled by the reading before.
func (g *gauges) read(interval time.Duration, n int) []gaugeBucket {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]gaugeBucket, n)
	for i, b := range g.buckets {
		if !b.known {
			continue
		}
		// The reading was the last of its bucket.
		if at := int((time.Duration(i+1)*g.interval - 1) / interval); at < n {
			out[at] = b
		} else if n > 0 {
			out[n-1] = b
		}
	}
	for i := 1; i < n; i++ {
		if !out[i].known {
			out[i] = out[i-1]
		}
	}
	return out
}
