package result

import (
	"math"

	"kvbench/tracing"
)

// Timeline is what happened in each interval. Arrays of a tier that does not exist are absent;
// readings are null before the first.
type Timeline struct {
	IntervalNS int64              `json:"interval_ns" merge:"same"`
	LastNS     int64              `json:"last_interval_ns" merge:"-"` // the last may be shorter
	ReadBytes  map[string][]int64 `json:"read_bytes" merge:"sum"`
	WriteBytes map[string][]int64 `json:"write_bytes" merge:"sum"`
	Requests   []int64            `json:"requests" merge:"sum"`
	Blocks     []int64            `json:"blocks,omitempty" merge:"sum"` // requested, of block traces
	BlockHits  []int64            `json:"block_hits,omitempty" merge:"sum"`
	// of a cache without bounds; null where it is unknown
	BlockIdeal    []*int64            `json:"block_ideal_hits,omitempty" merge:"sum"`
	Queued        []*int64            `json:"queued" merge:"sum"`
	InFlight      []*int64            `json:"in_flight" merge:"sum"`
	TierUsedBytes map[string][]*int64 `json:"tier_used_bytes" merge:"sum"`
	EvictedBytes  map[string][]int64  `json:"evicted_bytes" merge:"sum"` // of entries deleted for capacity
	DemotedBytes  map[string][]int64  `json:"demoted_bytes" merge:"sum"` // of entries moved to the tier below
	// How often what ended in an interval took how many microseconds, by the names of histograms:
	// storage_read and storage_write of an entry, storage_read_request and storage_write_request of
	// a request at the device, request_end_to_end, request_ttft.
	TimesUS map[string]tracing.Growth `json:"times_us,omitempty" merge:"-"`
}

// Course is the timeline's times as a trace has its own: intervals by their ends, in seconds from
// the window's opening. Nil where there are none, or where they are not as many as the intervals:
// a file may have been edited.
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

// BlockRatios are the block hit ratio of a replayed trace and the one that a cache without bounds
// would have had, over time. What is not known, or had no blocks, is not a number.
type BlockRatios struct {
	At                   []float64 // s since the window opened: the beginning of each part
	Hit, Ideal           []float64 // of the part
	HitSoFar, IdealSoFar []float64 // from the window's opening to the end of the part
}

// BlockRatios is nil for a result that replayed no blocks. Neighbouring intervals are added up
// until at most most parts remain, which differ by one interval at most.
func (t *Timeline) BlockRatios(most int) *BlockRatios {
	if t == nil || t.IntervalNS <= 0 || len(t.Blocks) == 0 || len(t.BlockHits) != len(t.Blocks) {
		return nil
	}
	r := &BlockRatios{}
	parts := min(len(t.Blocks), most)
	begin := func(part int) int { return (part*len(t.Blocks) + parts - 1) / parts }
	var allSoFar, hitsSoFar, idealSoFar float64
	for part := range parts {
		// What is not known in one interval makes the sum unknown.
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

// share is not a number where nothing happened.
func share(part, whole float64) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return part / whole
}
