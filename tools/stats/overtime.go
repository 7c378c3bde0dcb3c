package stats

import (
	"math"

	"kvbench/kvbench/result"
)

// Ratios are the block hit ratio of a replayed trace and the one that a cache without bounds would
// have had, over time. What is not known, or had no blocks, is not a number.
type Ratios struct {
	At                   []float64 // s since the window opened: the beginning of each interval
	Hit, Ideal           []float64 // of the interval
	HitSoFar, IdealSoFar []float64 // from the window's opening to the end of the interval
}

// BlockRatios is nil for a result that replayed no blocks. Neighbouring intervals are added up
// until at most most remain.
func BlockRatios(t *result.Timeline, most int) *Ratios {
	if t == nil || t.IntervalNS <= 0 || len(t.Blocks) == 0 || len(t.BlockHits) != len(t.Blocks) {
		return nil
	}
	step := (len(t.Blocks) + most - 1) / most
	r := &Ratios{}
	var all, hits, ideal count
	for from := 0; from < len(t.Blocks); from += step {
		var b, h, i count
		for k := from; k < min(from+step, len(t.Blocks)); k++ {
			b.add(t.Blocks[k], true)
			h.add(t.BlockHits[k], true)
			known := k < len(t.BlockIdeal) && t.BlockIdeal[k] != nil
			if known {
				i.add(*t.BlockIdeal[k], true)
			} else {
				i.add(0, false)
			}
		}
		all.add(b.n, !b.unknown)
		hits.add(h.n, !h.unknown)
		ideal.add(i.n, !i.unknown)
		r.At = append(r.At, float64(from)*float64(t.IntervalNS)/1e9)
		r.Hit, r.Ideal = append(r.Hit, h.of(b)), append(r.Ideal, i.of(b))
		r.HitSoFar, r.IdealSoFar = append(r.HitSoFar, hits.of(all)),
			append(r.IdealSoFar, ideal.of(all))
	}
	return r
}

// count is a sum that is unknown once one of its parts is.
type count struct {
	n       int64
	unknown bool
}

// add takes in the number of one interval, if it is known.
func (c *count) add(n int64, known bool) {
	c.n += n
	c.unknown = c.unknown || !known
}

// of is the share of a whole, or not a number where one of the two is unknown or nothing happened.
func (c count) of(whole count) float64 {
	if c.unknown || whole.n == 0 {
		return math.NaN()
	}
	return float64(c.n) / float64(whole.n)
}
