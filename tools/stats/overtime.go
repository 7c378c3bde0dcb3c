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
	var allSoFar, hitsSoFar, idealSoFar float64
	for from := 0; from < len(t.Blocks); from += step {
		// What is not known in one interval makes the sum unknown.
		var all, hits, ideal float64
		for k := from; k < min(from+step, len(t.Blocks)); k++ {
			all += float64(t.Blocks[k])
			hits += float64(t.BlockHits[k])
			if k < len(t.BlockIdeal) && t.BlockIdeal[k] != nil {
				ideal += float64(*t.BlockIdeal[k])
			} else {
				ideal = math.NaN()
			}
		}
		allSoFar, hitsSoFar, idealSoFar = allSoFar+all, hitsSoFar+hits, idealSoFar+ideal
		r.At = append(r.At, float64(from)*float64(t.IntervalNS)/1e9)
		r.Hit, r.Ideal = append(r.Hit, share(hits, all)), append(r.Ideal, share(ideal, all))
		r.HitSoFar = append(r.HitSoFar, share(hitsSoFar, allSoFar))
		r.IdealSoFar = append(r.IdealSoFar, share(idealSoFar, allSoFar))
	}
	return r
}

// share is not a number where nothing happened.
func share(part, whole float64) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return part / whole
}
