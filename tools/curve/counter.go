package curve

import (
	"errors"
	"math"
	"slices"
	"time"

	"kvbench/kvbench/units"
	"kvbench/workloads/formats"
	"kvbench/workloads/model"
)

// perOctave is the number of capacities of a curve per doubling of the capacity.
const perOctave = 8

// interval is the length of the intervals of which the busiest gives the peak.
const interval = time.Minute

// counter counts the hits of caches of many capacities for one trace, exactly. Its memory grows only
// with the number of distinct blocks. One goroutine uses it.
type counter struct {
	sizer  model.Sizer
	warmup time.Duration // cold start: requests that arrive in it fill the cache and do not count
	asked  []int64       // capacities that the user gave
	stack  *stack
	sizes  []int64 // sizes of the blocks of one request
	capped []int64 // all capacities, ascending

	total    tally
	requests int64
	resized  int64
	largest  int64 // bytes of the largest request
	sums     []bucket
	peaks    []peak

	origin, now time.Duration // arrival of the first request, of the last one
	first       time.Duration // arrival of the first request that counts
	interval    int64         // number of the current interval
	during      []bucket
	all         tally // the requests of the current interval

	smallest, biggest int // tokens per block, 0 before the first request
}

// tally is the sum of requests.
type tally struct{ blocks, tokens, bytes int64 }

func (t *tally) add(o tally) {
	t.blocks += o.blocks
	t.tokens += o.tokens
	t.bytes += o.bytes
}

// bucket counts blocks whose distance is at most one capacity and larger than the next smaller one. A
// cache hits a block if its capacity is at least the distances of the block and of all blocks before it
// in the request, because no block is read after a missing one. A cache has the block if its capacity
// is at least the block's own distance; otherwise the block is written.
type bucket struct {
	hits, present tally
	prefixes      int64 // requests of which it is the first block
}

func (b *bucket) add(o *bucket) {
	b.hits.add(o.hits)
	b.present.add(o.present)
	b.prefixes += o.prefixes
}

// peak is the largest number of bytes in an interval.
type peak struct{ read, written int64 }

// newCounter returns a counter for the given capacities in bytes and for eight capacities per doubling.
func newCounter(sizer model.Sizer, capacities []int64, warmup time.Duration) *counter {
	c := &counter{sizer: sizer, warmup: warmup, asked: capacities, stack: newStack(),
		capped: slices.Clone(capacities)}
	for k := range 62 * perOctave {
		c.capped = append(c.capped, int64(math.Exp2(float64(k)/perOctave)))
	}
	slices.Sort(c.capped)
	c.capped = slices.Compact(c.capped)
	// The last bucket has distances above all capacities.
	c.sums, c.during = make([]bucket, len(c.capped)+1), make([]bucket, len(c.capped)+1)
	c.peaks = make([]peak, len(c.capped))
	return c
}

// add counts a request of blocks. Arrivals must not decrease.
func (c *counter) add(r *formats.Row, at time.Duration) error {
	if c.biggest == 0 {
		c.origin, c.smallest = at, r.BlockTokens
	}
	c.now = at
	c.smallest, c.biggest = min(c.smallest, r.BlockTokens), max(c.biggest, r.BlockTokens)
	left, requested := r.Context, int64(0)
	whole := c.sizer.Bytes(r.BlockTokens)
	c.sizes = c.sizes[:0]
	for range r.Blocks {
		size := whole
		if left < r.BlockTokens {
			size = c.sizer.Bytes(left)
		}
		left -= r.BlockTokens
		requested += size
		c.sizes = append(c.sizes, size)
	}
	c.largest = max(c.largest, requested)
	depths, resized := c.stack.request(r.Scope, r.Blocks, c.sizes)
	c.resized += resized
	if len(c.stack.blocks) > maxBlocks {
		return errors.New("the trace has more than 268,435,456 distinct blocks")
	}
	if at-c.origin < c.warmup {
		return nil
	}
	if c.requests == 0 {
		c.first = at
	}
	if n := int64((at - c.first) / interval); n != c.interval {
		c.endInterval()
		c.interval = n
	}
	c.requests++
	c.count(r, depths)
	return nil
}

// count counts the blocks of a request in their buckets.
func (c *counter) count(r *formats.Row, depths []int64) {
	reach, k, left := int64(0), 0, r.Context // the largest distance so far, and its bucket
	for i, depth := range depths {
		t := tally{1, int64(min(left, r.BlockTokens)), c.sizes[i]}
		left -= r.BlockTokens
		c.all.add(t)
		own := c.bucketOf(depth)
		c.during[own].present.add(t)
		if depth >= reach {
			reach, k = depth, own
		}
		c.during[k].hits.add(t)
		if i == 0 {
			c.during[k].prefixes++
		}
	}
}

// bucketOf returns the index of the first capacity of at least that many bytes.
func (c *counter) bucketOf(bytes int64) int {
	k, _ := slices.BinarySearch(c.capped, bytes)
	return k
}

// endInterval adds the counts of an interval to the sums.
func (c *counter) endInterval() {
	var read, present int64
	for k := range c.during {
		b := &c.during[k]
		if k < len(c.capped) {
			read += b.hits.bytes
			present += b.present.bytes
			p := &c.peaks[k]
			p.read, p.written = max(p.read, read), max(p.written, c.all.bytes-present)
		}
		c.sums[k].add(b)
		*b = bucket{}
	}
	c.total.add(c.all)
	c.all = tally{}
}

// report sets the counts of a report and the points of its curve: all capacities up to the footprint,
// and the capacities that the user gave.
func (c *counter) report(r *Report) {
	c.endInterval()
	r.Requests, r.Blocks, r.Tokens, r.Bytes = c.requests, c.total.blocks, c.total.tokens, c.total.bytes
	r.Distinct, r.FootprintBytes = int64(len(c.stack.blocks)), c.stack.bytes
	r.SmallestBlock, r.LargestBlock, r.LargestRequestBytes = c.smallest, c.biggest, c.largest
	// The peak of a trace that is shorter than an interval is its mean.
	r.Resized, r.DurationS = c.resized, (c.now - c.first).Seconds()
	r.IntervalS = min(interval.Seconds(), r.DurationS)
	var sum bucket
	for k := range c.capped {
		sum.add(&c.sums[k])
	}
	r.ideal = sum.hits.blocks
	r.IdealHitRatio = units.Ratio(sum.hits.blocks, r.Blocks)
	r.IdealTokenHitRatio = units.Ratio(sum.hits.tokens, r.Tokens)
	sum = bucket{}
	footprint := c.bucketOf(c.stack.bytes)
	for k, capacity := range c.capped {
		sum.add(&c.sums[k])
		p := Point{
			CapacityBytes: capacity, Asked: slices.Contains(c.asked, capacity),
			Fits: capacity >= c.largest,
			Hits: sum.hits.blocks, Kept: sum.present.blocks - sum.hits.blocks,
			Written:        r.Blocks - sum.present.blocks,
			HitRatio:       units.Ratio(sum.hits.blocks, r.Blocks),
			OfIdeal:        units.Ratio(sum.hits.blocks, r.ideal),
			TokenHitRatio:  units.Ratio(sum.hits.tokens, r.Tokens),
			PrefixHitRatio: units.Ratio(sum.prefixes, r.Requests),
			ReadBytes:      sum.hits.bytes, WriteBytes: r.Bytes - sum.present.bytes,
			PeakRead:  units.Ratio(c.peaks[k].read, r.IntervalS),
			PeakWrite: units.Ratio(c.peaks[k].written, r.IntervalS),
		}
		// A capacity of the footprint has the same hits as the next larger capacity.
		if k == footprint && capacity != c.stack.bytes {
			all := p
			all.CapacityBytes, all.Asked = c.stack.bytes, false
			r.add(all)
		}
		if p.Asked || p.Fits && k < footprint || capacity == c.stack.bytes {
			r.add(p)
		}
	}
}
