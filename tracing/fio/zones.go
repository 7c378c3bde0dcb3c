package fio

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"kvbench/tracing"
)

// Two neighbouring zones are told apart where that changes their shares by so much of all requests,
// and by so many standard deviations of what chance would make of one zone: there are hundreds of
// neighbours to compare. A zone with less than touched of the requests is none of the load's.
const (
	zoneShare = 0.015
	zoneSigma = 4
	touched   = 0.005
)

// place is a stretch of the device, its width in the unit of the histogram.
type place struct{ width, requests float64 }

// apart tells how far two neighbours are from being one: by how many standard deviations, and how
// many requests of the first are not where they would be then.
func (a place) apart(b place) (sigma, moved float64) {
	n, p := a.requests+b.requests, a.width/(a.width+b.width)
	if n == 0 {
		return 0, 0
	}
	moved = math.Abs(a.requests - n*p)
	return moved / math.Sqrt(n*p*(1-p)), moved
}

// zones writes where requests went as fio's random_distribution: percent of the requests on percent
// of the space, in the order of the device. Space that the load did not use is left out: the file
// that the job is given stands for what it used. It is empty where all of that was used alike.
//
// Reads and writes of one job have one distribution: fio's manual has one for each direction, which
// fio 3.33 refuses (github.com/axboe/fio/issues/1923).
func zones(directions ...tracing.Histogram) string {
	count := map[[2]float64]int64{} // a trace counts all directions in buckets of one width
	total := 0.0
	for _, h := range directions {
		for _, b := range h.Buckets {
			count[b.Range] += b.Count
		}
		total += float64(h.Count)
	}
	var all []place
	end := 0.0
	for i, at := range slices.SortedFunc(maps.Keys(count), byStart) {
		if i > 0 && at[0] > end {
			all = append(all, place{width: at[0] - end})
		}
		end = at[1]
		all = append(all, place{end - at[0], float64(count[at])})
	}
	all = joined(all, total)
	all = slices.DeleteFunc(all, func(z place) bool { return z.requests/total < touched })
	if all = joined(all, total); len(all) < 2 { // what lay on either side of a hole
		return ""
	}
	total = 0
	// What is left is all of the space, and all of the requests.
	width := 0.0
	for _, z := range all {
		width, total = width+z.width, total+z.requests
	}
	of := func(part func(place) float64, whole float64) []int {
		weights := make([]float64, len(all))
		for i, z := range all {
			weights[i] = part(z) / whole
		}
		return percents(weights, 100)
	}
	requests := of(func(z place) float64 { return z.requests }, total)
	space := of(func(z place) float64 { return z.width }, width)
	parts := make([]string, len(all))
	for i := range all {
		parts[i] = fmt.Sprintf("%d/%d", requests[i], space[i])
	}
	return "zoned:" + strings.Join(parts, ":")
}

func byStart(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) }

// joined makes one of neighbours that are alike, the two that are most alike first, until all are
// apart.
func joined(all []place, total float64) []place {
	for {
		best, least := -1, math.Inf(1)
		for i := range len(all) - 1 {
			sigma, moved := all[i].apart(all[i+1])
			if sigma < least && (sigma < zoneSigma || moved/total < zoneShare) {
				best, least = i, sigma
			}
		}
		if best < 0 {
			return all
		}
		all[best].width += all[best+1].width
		all[best].requests += all[best+1].requests
		all = slices.Delete(all, best+1, best+2)
	}
}

// percents makes whole numbers of weights that sum to 1, by largest remainder: each at least 1, the
// sum is whole.
func percents(weights []float64, whole int) []int {
	out := make([]int, len(weights))
	order := make([]int, len(weights))
	left, shares := whole, 0.0
	for i, w := range weights {
		order[i] = i
		if w*float64(whole) < 1 { // small ones get their one first
			out[i] = 1
			left--
		} else {
			shares += w
		}
	}
	rest := make([]float64, len(weights))
	room := left
	for i, w := range weights {
		if out[i] == 0 {
			exact := w / shares * float64(room)
			out[i] = max(1, int(exact))
			rest[i] = exact - float64(out[i])
			left -= out[i]
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for n := 0; left > 0; n++ {
		out[order[n%len(order)]]++
		left--
	}
	for left < 0 { // all those ones were more than the rest could give
		at := slices.Index(out, slices.Max(out))
		out[at]--
		left++
	}
	return out
}
