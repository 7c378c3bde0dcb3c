package reuse

import (
	"slices"
	"time"
)

// Summary is the sums of a trace's requests, and the curve of the hits of caches. Rates follow from
// Duration.
type Summary struct {
	Requests, Blocks, Tokens, Bytes int64 // requested after warm-up
	Distinct                        int64 // distinct blocks
	Footprint                       int64 // bytes of the distinct blocks
	SmallestBlock, LargestBlock     int   // tokens
	LargestRequest                  int64 // bytes of its blocks
	// Resized counts requests of a block with another size than its first one, which is used for the
	// curve. Without them the curve is exact.
	Resized  int64
	Duration time.Duration // from the first request that counts to the last
	Ideal    int64         // hits of a cache without limit
	Points   []Point       // by capacity, up to the footprint, and Config.Capacities
}

// Point is the result of a cache of one capacity.
type Point struct {
	Capacity int64 // bytes
	Asked    bool  // it is one of Config.Capacities
	// Small: the blocks of a request do not all fit. The result depends on the order of writes then;
	// the point is that of a cache that keeps the first blocks.
	Small bool

	Hits, HitTokens       int64
	Unreachable           int64 // blocks that exist after a missing block
	Written               int64 // missing blocks
	PrefixHits            int64 // requests whose first block was found
	ReadBytes, WriteBytes int64
	PeakRead, PeakWrite   int64 // bytes in the busiest interval
	// Full is the time from the first request at which the distinct blocks have filled the capacity; -1
	// if they do not. Then Beyond is the time at which they would if the trace continued as in its second
	// half; -1 if they would not, or if Full is known.
	Full, Beyond time.Duration
}

// Summary returns the counts so far.
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
		// The first capacity above the footprint has the same hits as the footprint itself.
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

// longest limits the extrapolation of a trace to a century.
const longest = 36525 * 24 * time.Hour

// pace returns the growth of the distinct blocks in bytes/s in the second half of the trace, to the
// interval, 0 if it is unknown. In the first half most blocks are new.
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

// Knee returns the point farthest above the straight line from 0 to the best point: up to it a byte brings
// more hits than on average, beyond it fewer (Satopaa et al., "Finding a Kneedle in a Haystack", 2011). Both
// axes are linear, like the price of bytes. Nil if no point is above the line.
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

// Reaching returns the first point with at least that share of the best number of hits; nil if there is
// none, or if no capacity has hits.
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
