package reuse

import (
	"slices"
	"time"
)

// Summary is what a trace asks of caches, and a curve of what caches find of it. Ratios are of what
// was counted; rates follow from Duration.
type Summary struct {
	Requests, Blocks, Tokens, Bytes int64 // asked for, after warm-up
	Distinct                        int64 // blocks
	Footprint                       int64 // bytes of them
	SmallestBlock, LargestBlock     int   // tokens
	LargestRequest                  int64 // bytes of its blocks
	// Resized is how often a block came with another size than it had first, with which it was
	// counted: the curve is exact where there are none.
	Resized  int64
	Duration time.Duration // from the first request that counts to the last
	Ideal    int64         // hits of a cache without bounds
	Points   []Point       // by capacity, up to the footprint and what was asked for besides
}

// Point is what a cache of one capacity does.
type Point struct {
	Capacity int64 // bytes
	Asked    bool  // by Config.Capacities
	// Small: a request's blocks do not fit together. What a cache does then depends on
	// when it writes, and the point is that of one which keeps the first blocks.
	Small bool

	Hits, HitTokens       int64
	Unreachable           int64 // there, but behind a missing block
	Written               int64 // blocks: what was not there
	PrefixHits            int64 // requests of which at least the first block was found
	ReadBytes, WriteBytes int64
	PeakRead, PeakWrite   int64 // bytes in the busiest interval
	// Full is when the blocks of the trace have filled the capacity, since its first request, if
	// none is evicted; -1 if they do not. Then Beyond is when they would if the trace went on as in
	// its second half; -1 if it would not, or they do.
	Full, Beyond time.Duration
}

// Summary returns what was counted so far.
func (c *Curve) Summary() Summary {
	c.endInterval()
	s := Summary{Requests: c.requests, Blocks: c.total.blocks, Tokens: c.total.tokens,
		Bytes: c.total.bytes, Distinct: int64(len(c.stack.blocks)), Footprint: c.stack.bytes,
		SmallestBlock: c.smallest, LargestBlock: c.biggest,
		LargestRequest: c.largest, Resized: c.resized, Duration: c.now - c.first}
	pace := c.pace()
	var hits, present tally
	var prefixes int64
	for k, capacity := range c.capped {
		b := &c.sums[k]
		hits.add(b.hits)
		present.add(b.present)
		prefixes += b.prefixes
		p := Point{Capacity: capacity, Asked: slices.Contains(c.cfg.Capacities, capacity),
			Small: capacity < c.largest,
			Hits:  hits.blocks, HitTokens: hits.tokens, ReadBytes: hits.bytes,
			Unreachable: present.blocks - hits.blocks, Written: c.total.blocks - present.blocks,
			WriteBytes: c.total.bytes - present.bytes, PrefixHits: prefixes,
			PeakRead: c.peaks[k].read, PeakWrite: c.peaks[k].written, Full: -1, Beyond: -1}
		if k < c.filled {
			p.Full = c.full[k]
		} else if pace > 0 {
			more := min(float64(capacity-c.stack.bytes)/pace, longest.Seconds())
			p.Beyond = c.now - c.origin + time.Duration(more*float64(time.Second))
		}
		// The first capacity that has everything finds what the footprint itself would.
		if k == c.filled && capacity != c.stack.bytes {
			all := p
			all.Capacity, all.Asked, all.Beyond = c.stack.bytes, false, c.now-c.origin
			s.Points = append(s.Points, all)
		}
		if p.Asked || !p.Small && k < c.filled || capacity == c.stack.bytes {
			s.Points = append(s.Points, p)
		}
	}
	s.Ideal = hits.blocks // of the largest capacity
	return s
}

// longest is how far a trace is thought to go on: a century.
const longest = 36525 * 24 * time.Hour

// pace is the bytes per second by which distinct blocks became more in the second half of the
// trace, to the interval, 0 if it is unknown: the beginning, when everything is new, says nothing
// of later.
func (c *Curve) pace() float64 {
	half := c.origin + (c.now-c.origin)/2
	i := slices.IndexFunc(c.growth, func(g size) bool { return g.at > half })
	if i < 0 {
		i = len(c.growth)
	}
	if i == 0 || c.now <= c.origin {
		return 0
	}
	from := c.growth[i-1]
	return float64(c.stack.bytes-from.bytes) / (c.now - from.at).Seconds()
}

// Knee is the point of a curve that lies farthest above the straight line from nothing to the best:
// up to it a byte brings more hits than on average, behind it fewer (Satopaa et al., "Finding a
// Kneedle in a Haystack", 2011). Both axes are linear, as money for bytes is. Nil where there is no
// point above the line.
func (s *Summary) Knee() *Point {
	var knee *Point
	most, best := 0.0, s.Ideal
	for i := range s.Points {
		p := &s.Points[i]
		if p.Small || p.Capacity > s.Footprint || best == 0 {
			continue
		}
		above := float64(p.Hits)/float64(best) - float64(p.Capacity)/float64(s.Footprint)
		if above > most {
			knee, most = p, above
		}
	}
	return knee
}

// Reaching is the first point that has at least that share of the best number of hits, nil if none
// has or there is none to be had.
func (s *Summary) Reaching(share float64) *Point {
	best := float64(s.Ideal)
	i := slices.IndexFunc(s.Points, func(p Point) bool {
		return best > 0 && !p.Small && float64(p.Hits) >= share*best
	})
	if i < 0 {
		return nil
	}
	return &s.Points[i]
}
