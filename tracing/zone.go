package tracing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// hotShare is the share of requests that the hot zone holds.
const hotShare = 0.8

// hotPlaces is how many places are told apart; a load with more is spread over all of them.
const hotPlaces = 3

// zone is a stretch of the device with its requests.
type zone struct {
	low, high float64 // GiB
	count     int64
}

// HotZone tells where on the device 80 % of the requests went: the fewest buckets that hold as
// many, if they lie in a few places, else the shortest stretch.
func (h *Histogram) HotZone() string {
	if h.Samples() == 0 {
		return ""
	}
	need := int64(math.Ceil(hotShare * float64(h.Count)))
	zones := fewest(h, need)
	if len(zones) > hotPlaces {
		zones = []zone{shortest(h, need)}
	}
	parts := make([]string, len(zones))
	for i, z := range zones {
		parts[i] = fmt.Sprintf("%.0f–%.0f GiB (%.0f%%", z.low, z.high,
			100*float64(z.count)/float64(h.Count))
	}
	return strings.Join(parts, "), ") + " of requests)"
}

// fewest picks the fullest buckets until there are enough requests, and joins neighbours.
func fewest(h *Histogram, need int64) (zones []zone) {
	order := slices.Clone(h.Buckets)
	slices.SortFunc(order, func(a, b Bucket) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Range[0], b.Range[0]))
	})
	n := 0
	for ; need > 0; n++ {
		need -= order[n].Count
	}
	order = order[:n]
	slices.SortFunc(order, func(a, b Bucket) int { return cmp.Compare(a.Range[0], b.Range[0]) })
	for _, b := range order {
		if last := len(zones) - 1; last >= 0 && zones[last].high == b.Range[0] {
			zones[last].high, zones[last].count = b.Range[1], zones[last].count+b.Count
			continue
		}
		zones = append(zones, zone{b.Range[0], b.Range[1], b.Count})
	}
	return zones
}

// shortest is the shortest stretch with enough requests.
func shortest(h *Histogram, need int64) zone {
	best := zone{high: math.Inf(1)}
	first, in := 0, int64(0)
	for last, b := range h.Buckets {
		in += b.Count
		for in-h.Buckets[first].Count >= need {
			in -= h.Buckets[first].Count
			first++
		}
		z := zone{h.Buckets[first].Range[0], h.Buckets[last].Range[1], in}
		if in >= need && z.high-z.low < best.high-best.low {
			best = z
		}
	}
	return best
}
