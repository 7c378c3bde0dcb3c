package plainio

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// The grid has request sizes from 4 KiB to 4 MiB in factors of 4, with 1 to 128 requests in flight. 64
// MiB in flight give 8 GiB/s if a request takes 8 ms.
const (
	pageSize   = 4096     // bytes of the smallest requests
	KneeSize   = 4 << 20  // bytes of the largest requests
	KneeFlight = 64 << 20 // maximum bytes in flight
	kneeMost   = 128      // maximum requests in flight
	kneeStep   = 4        // factor between sizes
	kneeRounds = 3        // measurements of each cell
	kneeWithin = 0.95     // share of the best rate that counts as equally fast
)

// cell is one point of the grid, with its measurements.
type cell struct {
	size  int64
	n     int
	rates []float64         // bytes per second, one of each measurement
	lat   *result.Histogram // of all requests of the measurements
}

func newCell(size int64, n int) *cell {
	return &cell{size: size, n: n, lat: result.NewHistogram(units.Nanoseconds)}
}

func (c *cell) inFlight() int64 { return c.size * int64(c.n) }

// allCells returns the cells of the grid, sorted by smaller. step is the factor between numbers in
// flight.
func allCells(smallest int64, step int) (cells []*cell) {
	for size := int64(KneeSize); size >= smallest; size /= kneeStep {
		for n := 1; n <= kneeMost && int64(n)*size <= KneeFlight; n *= step {
			cells = append(cells, newCell(size, n))
		}
	}
	slices.SortFunc(cells, smaller)
	return cells
}

// smaller compares cells by the bytes in flight, then by the number of requests.
func smaller(a, b *cell) int {
	return cmp.Or(cmp.Compare(a.inFlight(), b.inFlight()), cmp.Compare(a.n, b.n))
}

// newGrid returns the cells whose rounds fit into the time left. It leaves out the cells that take
// longest: at 5 MiB/s one measurement with 64 MiB in flight takes most of a minute. If it had to leave
// out more than a quarter, it takes only every second number in flight.
func newGrid(smallest int64, p pace, left time.Duration) []*cell {
	fit := func(cells []*cell) []*cell {
		slices.SortStableFunc(cells, func(a, b *cell) int {
			return cmp.Compare(p.time(a), p.time(b))
		})
		total, n := kneeRounds*p.time(cells[0]), 1
		for ; n < len(cells); n++ {
			if total += kneeRounds * p.time(cells[n]); total > left {
				break
			}
		}
		slices.SortFunc(cells[:n], smaller)
		return cells[:n]
	}
	all := allCells(smallest, 2)
	if cells := fit(slices.Clone(all)); 4*len(cells) >= 3*len(all) {
		return cells
	}
	return fit(allCells(smallest, 4))
}

// pace is the speed of the storage according to probe.
type pace struct {
	least    time.Duration // minimum length of a measurement
	latency  time.Duration // of one request alone
	bytes    float64       // per second
	requests float64       // per second
}

// time estimates the length of a measurement of a cell, in which kneeCompleted requests per request in
// flight complete.
func (p pace) time(c *cell) time.Duration {
	wave := max(p.latency, seconds(float64(c.inFlight())/p.bytes),
		seconds(float64(c.n)/p.requests))
	return max(p.least, (kneeCompleted+1)*wave)
}

// seconds converts to a duration without overflow.
func seconds(s float64) time.Duration { return time.Duration(min(s, 1e6) * float64(time.Second)) }

// order returns every cell once per round. Each round has its own random order.
func order(cells []*cell, seed uint64) (all []*cell) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for range kneeRounds {
		round := slices.Clone(cells)
		rng.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		all = append(all, round...)
	}
	return all
}

// points returns the measured cells, in the order of the grid.
func points(cells []*cell) (out []result.KneePoint) {
	for _, c := range cells {
		if len(c.rates) == 0 {
			continue
		}
		median, _ := units.Median(c.rates)
		p := result.KneePoint{RequestBytes: c.size, InFlight: c.n, Rate: median,
			Min: slices.Min(c.rates), Max: slices.Max(c.rates), Rounds: len(c.rates)}
		if p99, some := c.lat.Percentile(0.99); some && c.lat.Count() >= 1000 {
			p.P99NS = &p99
		}
		out = append(out, p)
	}
	return out
}

// choose sets the knee: the first point whose median rate is at least kneeWithin of the best rate. This
// is the point with the fewest bytes in flight, and then with the fewest requests, which cost the least
// CPU time. choose returns false if there is no such point.
//
// The best rate is the largest minimum of a cell's measurements. The largest median of forty cells would
// be an outlier: on a loop device with a cgroup limit of 200 MiB/s, burst credit gave one cell a median
// of 277 MiB/s and a minimum of 200 MiB/s.
func choose(k *result.Knee) bool {
	for _, p := range k.Points {
		k.Best = max(k.Best, p.Min)
	}
	for _, p := range k.Points {
		if p.Rate >= kneeWithin*k.Best {
			k.RequestBytes, k.InFlight = p.RequestBytes, p.InFlight
			k.Rate, k.P99NS = p.Rate, p.P99NS
			return true
		}
	}
	return false
}
