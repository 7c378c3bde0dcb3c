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

// HotZone tells where on the device 80 % of the requests went: the fewest buckets that hold as
// many, if they lie in a few places, else the shortest stretch.
func (h Histogram) HotZone() string {
	if h.Count == 0 {
		return ""
	}
	need := int64(math.Ceil(hotShare * float64(h.Count)))
	zones := fewest(h, need)
	if len(zones) > hotPlaces {
		zones = []Bucket{shortest(h, need)}
	}
	parts := make([]string, len(zones))
	for i, z := range zones {
		parts[i] = fmt.Sprintf("%.4g–%.4g GiB (%.0f%%", z.Range[0], z.Range[1],
			100*float64(z.Count)/float64(h.Count))
	}
	return strings.Join(parts, "), ") + " of requests)"
}

// fewest picks the fullest buckets until there are enough requests, and joins neighbours.
func fewest(h Histogram, need int64) (zones []Bucket) {
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
		if last := len(zones) - 1; last >= 0 && zones[last].Range[1] == b.Range[0] {
			zones[last].Range[1] = b.Range[1]
			zones[last].Count += b.Count
		} else {
			zones = append(zones, b)
		}
	}
	return zones
}

// shortest is the shortest stretch with enough requests.
func shortest(h Histogram, need int64) (best Bucket) {
	least := math.Inf(1)
	first, in := 0, int64(0)
	for _, b := range h.Buckets {
		in += b.Count
		for in-h.Buckets[first].Count >= need {
			in -= h.Buckets[first].Count
			first++
		}
		low, high := h.Buckets[first].Range[0], b.Range[1]
		if in >= need && high-low < least {
			least, best = high-low, Bucket{Range: [2]float64{low, high}, Count: in}
		}
	}
	return best
}
