package reuse

import (
	"errors"
	"math"
	"math/bits"
	"slices"
	"time"

	"kvbench/workloads/formats"
	"kvbench/workloads/model"
)

// perOctave is how many capacities of a curve lie between one and its double.
const perOctave = 8

// Config is the configuration of a Curve.
type Config struct {
	Sizer      model.Sizer   // bytes of tokens
	Capacities []int64       // bytes, > 0: additional points of the curve
	Warmup     time.Duration // requests that arrive within it fill the cache and do not count
}

// Interval is the length of the intervals whose peak is counted.
const Interval = time.Minute

// Curve counts the hits of caches of many capacities for one trace. One goroutine calls New, Add and
// Summary. Its memory grows only with the number of distinct blocks.
type Curve struct {
	cfg    Config
	stack  *stack
	sizes  []int64 // of the blocks of one request
	capped []int64 // the capacities, ascending
	octave []int32 // by bits of bytes-1: the first capacity that may be large enough

	total    tally
	requests int64
	resized  int64
	largest  int64 // bytes of the largest request
	sums     []bucket
	peaks    []peak

	begun             bool
	origin, now       time.Duration // arrival of the first request, of the last one
	counted           bool          // a request has counted
	first             time.Duration // arrival of the first request that counts
	interval          int64         // number of the current interval
	during            []bucket
	all               tally // of the interval
	filled            int   // number of capacities that the distinct blocks have filled
	full              []time.Duration
	growth            []size
	smallest, biggest int // tokens per block
}

// tally is the sum of requests.
type tally struct{ blocks, tokens, bytes int64 }

func (t *tally) add(o tally) {
	t.blocks += o.blocks
	t.tokens += o.tokens
	t.bytes += o.bytes
}

// bucket counts blocks whose distance is at most a capacity, and more than the next smaller one. A block is
// a hit at capacities that are at least its distance and the distances of all blocks before it, because no
// block is read after a missing one. It is present at capacities of at least its own distance; elsewhere it
// is written.
type bucket struct {
	hits, present tally
	prefixes      int64 // requests whose first block it is
}

// peak is the largest number of bytes in an interval.
type peak struct{ read, written int64 }

// size is the bytes of the distinct blocks at a time.
type size struct {
	at    time.Duration
	bytes int64
}

// New returns an empty curve.
func New(cfg Config) *Curve {
	c := &Curve{cfg: cfg, stack: newStack(), capped: slices.Clone(cfg.Capacities)}
	for k := range 62 * perOctave {
		c.capped = append(c.capped, int64(math.Exp2(float64(k)/perOctave)))
	}
	slices.Sort(c.capped)
	c.capped = slices.Compact(c.capped)
	for b := range 64 {
		least := int64(1) // the smallest size whose bytes-1 has b bits
		if b > 0 {
			least = 1<<(b-1) + 1
		}
		k, _ := slices.BinarySearch(c.capped, least)
		c.octave = append(c.octave, int32(k))
	}
	// The last bucket: distances beyond all capacities.
	c.sums, c.during = make([]bucket, len(c.capped)+1), make([]bucket, len(c.capped)+1)
	c.peaks, c.full = make([]peak, len(c.capped)), make([]time.Duration, len(c.capped))
	return c
}

// ErrTooMany reports a trace with too many distinct blocks.
var ErrTooMany = errors.New("the trace has more than 268,435,456 distinct blocks")

// Add counts a request of blocks. Arrivals must not decrease.
func (c *Curve) Add(r *formats.Row, at time.Duration) error {
	if !c.begun {
		c.begun, c.origin = true, at
		c.smallest, c.biggest = r.BlockTokens, r.BlockTokens
	}
	c.now = at
	c.smallest, c.biggest = min(c.smallest, r.BlockTokens), max(c.biggest, r.BlockTokens)
	left, asked := r.Context, int64(0)
	whole := c.cfg.Sizer.Bytes(r.BlockTokens)
	c.sizes = c.sizes[:0]
	for range r.Blocks {
		size := whole
		if left < r.BlockTokens {
			size = c.cfg.Sizer.Bytes(left)
		}
		left -= r.BlockTokens
		asked += size
		c.sizes = append(c.sizes, size)
	}
	c.largest = max(c.largest, asked)
	before := c.stack.bytes
	depths, resized := c.stack.request(r.Scope, r.Blocks, c.sizes)
	c.resized += resized
	if c.stack.full() {
		return ErrTooMany
	}
	if c.stack.bytes > before {
		c.grow(at)
	}
	if at-c.origin < c.cfg.Warmup {
		return nil
	}
	if !c.counted {
		c.counted, c.first = true, at
	}
	if n := int64((at - c.first) / Interval); n != c.interval {
		c.endInterval()
		c.interval = n
	}
	c.requests++
	c.count(r, depths)
	return nil
}

// count counts the blocks of a request in their buckets.
func (c *Curve) count(r *formats.Row, depths []int64) {
	reach, k, left := int64(0), 0, r.Context // the largest distance so far, its bucket
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
func (c *Curve) bucketOf(bytes int64) int {
	if bytes == Never {
		return len(c.capped)
	}
	k := int(c.octave[bits.Len64(uint64(max(bytes, 1)-1))])
	for k < len(c.capped) && c.capped[k] < bytes {
		k++
	}
	return k
}

// grow records the growth of the distinct blocks, and the capacities that they fill.
func (c *Curve) grow(at time.Duration) {
	for ; c.filled < len(c.capped) && c.capped[c.filled] < c.stack.bytes; c.filled++ {
		c.full[c.filled] = at - c.origin
	}
	if n := len(c.growth); n > 0 && at-c.growth[n-1].at < Interval {
		return
	}
	c.growth = append(c.growth, size{at, c.stack.bytes})
}

// endInterval adds the counts of an interval to the sums.
func (c *Curve) endInterval() {
	var read, present int64
	for k := range c.during {
		b := &c.during[k]
		if k < len(c.capped) {
			read += b.hits.bytes
			present += b.present.bytes
			p := &c.peaks[k]
			p.read, p.written = max(p.read, read), max(p.written, c.all.bytes-present)
		}
		sum := &c.sums[k]
		sum.hits.add(b.hits)
		sum.present.add(b.present)
		sum.prefixes += b.prefixes
		*b = bucket{}
	}
	c.total.add(c.all)
	c.all = tally{}
}
