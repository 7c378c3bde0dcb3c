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

// Config says what a curve is of.
type Config struct {
	Sizer      model.Sizer   // bytes of tokens
	Capacities []int64       // bytes, > 0: points that the curve has besides its own
	Warmup     time.Duration // requests that arrive within it fill the cache and do not count
}

// Interval is the length of the intervals whose peak is counted.
const Interval = time.Minute

// Curve counts what caches of many capacities find of one trace. It is made by New, fed by Add and
// read by Summary, all by one goroutine. Its memory grows with the distinct blocks alone.
type Curve struct {
	cfg    Config
	stack  *stack
	sizes  []int64 // of the blocks of one request
	capped []int64 // the capacities, ascending
	octave []int32 // by bits of bytes-1: the first capacity that may hold them

	total    tally
	requests int64
	resized  int64
	largest  int64 // bytes of the largest request
	sums     []bucket
	peaks    []peak

	begun             bool
	origin, now       time.Duration // arrival of the first request, of the last one
	counted           bool          // any request
	first             time.Duration // arrival of the first that counts
	interval          int64         // that is being counted
	during            []bucket
	all               tally // of the interval
	filled            int   // capacities that the blocks so far have filled
	full              []time.Duration
	growth            []size
	smallest, biggest int // tokens per block
}

// tally is what was asked for.
type tally struct{ blocks, tokens, bytes int64 }

func (t *tally) add(o tally) {
	t.blocks += o.blocks
	t.tokens += o.tokens
	t.bytes += o.bytes
}

// bucket counts blocks whose distance is a capacity or less, and more than the next smaller one. A
// block is a hit where its distance and those of all blocks before it fit: behind a missing block
// nothing is read. It is present where its own does: what is not, is written.
type bucket struct {
	hits, present tally
	prefixes      int64 // requests whose first block it is
}

// peak is the most bytes of one interval.
type peak struct{ read, written int64 }

// size is how many bytes distinct blocks had at a time.
type size struct {
	at    time.Duration
	bytes int64
}

// New makes an empty curve.
func New(cfg Config) *Curve {
	c := &Curve{cfg: cfg, stack: newStack(), capped: slices.Clone(cfg.Capacities)}
	for k := range 62 * perOctave {
		c.capped = append(c.capped, int64(math.Exp2(float64(k)/perOctave)))
	}
	slices.Sort(c.capped)
	c.capped = slices.Compact(c.capped)
	for b := range 64 {
		least := int64(1) // whose bytes-1 has b bits
		if b > 0 {
			least = 1<<(b-1) + 1
		}
		k, _ := slices.BinarySearch(c.capped, least)
		c.octave = append(c.octave, int32(k))
	}
	// behind the last: what no capacity has
	c.sums, c.during = make([]bucket, len(c.capped)+1), make([]bucket, len(c.capped)+1)
	c.peaks, c.full = make([]peak, len(c.capped)), make([]time.Duration, len(c.capped))
	return c
}

// ErrTooMany reports a trace with more distinct blocks than a curve can keep.
var ErrTooMany = errors.New("the trace has more than 268,435,456 distinct blocks")

// Add counts a request of blocks that arrives at a time, which never runs back.
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

// count puts the blocks of a request into their buckets.
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

// bucketOf is the first capacity of at least so many bytes.
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

// grow notes that the distinct blocks have become more, and which capacities they have filled.
func (c *Curve) grow(at time.Duration) {
	for ; c.filled < len(c.capped) && c.capped[c.filled] < c.stack.bytes; c.filled++ {
		c.full[c.filled] = at - c.origin
	}
	if n := len(c.growth); n > 0 && at-c.growth[n-1].at < Interval {
		return
	}
	c.growth = append(c.growth, size{at, c.stack.bytes})
}

// endInterval adds what was counted in an interval to the sums.
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
