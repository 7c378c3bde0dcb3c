package result

import (
	"math"

	"kvbench/tracing"
)

// Timeline has counts per interval of the window. Series of a tier that does not exist are absent.
// Readings (queued, in_flight, tier_used_bytes) are null before the first reading.
type Timeline struct {
	IntervalNS int64              `json:"interval_ns" merge:"same"`
	LastNS     int64              `json:"last_interval_ns" merge:"-"` // length of the last interval
	ReadBytes  map[string][]int64 `json:"read_bytes" merge:"sum"`
	WriteBytes map[string][]int64 `json:"write_bytes" merge:"sum"`
	Requests   []int64            `json:"requests" merge:"sum"`
	Blocks     []int64            `json:"blocks,omitempty" merge:"sum"` // requested, of block traces
	BlockHits  []int64            `json:"block_hits,omitempty" merge:"sum"`
	// hits of an unlimited cache; null if unknown
	BlockIdeal    []*int64            `json:"block_ideal_hits,omitempty" merge:"sum"`
	Queued        []*int64            `json:"queued" merge:"sum"`
	InFlight      []*int64            `json:"in_flight" merge:"sum"`
	TierUsedBytes map[string][]*int64 `json:"tier_used_bytes" merge:"sum"`
	EvictedBytes  map[string][]int64  `json:"evicted_bytes" merge:"sum"` // of entries deleted for capacity
	DemotedBytes  map[string][]int64  `json:"demoted_bytes" merge:"sum"` // of entries moved to the tier below
	// Latency histograms per interval, in microseconds, by name: storage_read and storage_write
	// (entries), storage_read_request and storage_write_request (requests at the device),
	// request_end_to_end, request_ttft. A latency counts in the interval in which it ends.
	TimesUS map[string]tracing.Series `json:"times_us,omitempty" merge:"-"`
}

// Course returns the timeline's latency histograms in the form of a trace. At has the ends of the
// intervals in seconds from the start of the window. It returns nil without histograms, or if they
// do not match the intervals (an edited file).
func (t *Timeline) Course() *tracing.Course {
	if t == nil || t.IntervalNS <= 0 || len(t.TimesUS) == 0 {
		return nil
	}
	c := &tracing.Course{Histograms: t.TimesUS}
	for i := range t.Requests {
		c.At = append(c.At, float64(i+1)*float64(t.IntervalNS)/1e9)
	}
	if n := len(c.At); n > 0 && t.LastNS > 0 {
		c.At[n-1] += float64(t.LastNS-t.IntervalNS) / 1e9
	}
	if !c.Sound() {
		return nil
	}
	return c
}

// BlockRatios has the block hit ratio of a replayed trace over time, and the hit ratio of an
// unlimited cache. A value is NaN if it is unknown, or without blocks.
type BlockRatios struct {
	At                   []float64 // begin of each part, in s from the window's start
	Hit, Ideal           []float64 // of the part
	HitSoFar, IdealSoFar []float64 // from the window's start to the end of the part
}

// BlockRatios returns the ratios over at most most parts of the window. The lengths of the parts
// differ by at most one interval. It returns nil if no blocks were replayed.
func (t *Timeline) BlockRatios(most int) *BlockRatios {
	if t == nil || t.IntervalNS <= 0 || len(t.Blocks) == 0 || len(t.BlockHits) != len(t.Blocks) {
		return nil
	}
	r := &BlockRatios{}
	parts := min(len(t.Blocks), most)
	begin := func(part int) int { return (part*len(t.Blocks) + parts - 1) / parts }
	var allSoFar, hitsSoFar, idealSoFar float64
	for part := range parts {
		// One unknown interval makes the sum unknown.
		var all, hits, ideal float64
		for k := begin(part); k < begin(part+1); k++ {
			all += float64(t.Blocks[k])
			hits += float64(t.BlockHits[k])
			if k < len(t.BlockIdeal) && t.BlockIdeal[k] != nil {
				ideal += float64(*t.BlockIdeal[k])
			} else {
				ideal = math.NaN()
			}
		}
		allSoFar, hitsSoFar, idealSoFar = allSoFar+all, hitsSoFar+hits, idealSoFar+ideal
		r.At = append(r.At, float64(begin(part))*float64(t.IntervalNS)/1e9)
		r.Hit, r.Ideal = append(r.Hit, share(hits, all)), append(r.Ideal, share(ideal, all))
		r.HitSoFar = append(r.HitSoFar, share(hitsSoFar, allSoFar))
		r.IdealSoFar = append(r.IdealSoFar, share(idealSoFar, allSoFar))
	}
	return r
}

// share returns part ÷ whole, NaN if whole is 0.
func share(part, whole float64) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return part / whole
}
