package plainio

import (
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// pair is a point of the grid, and what was measured of it.
type pair struct {
	size    int64
	n       int
	looks   []float64         // rates in the survey
	took    time.Duration     // the last of them
	rates   []float64         // when it was measured again
	guess   bool              // nobody has looked: the look is the mean of its neighbours
	useless bool              // too little of it ends to be measured
	lat     *result.Histogram // of all of them
}

func newPair(size int64, n int) *pair {
	return &pair{size: size, n: n, lat: result.NewHistogram(units.Nanoseconds)}
}

func (p *pair) inFlight() int64 { return p.size * int64(p.n) }

// spender spends what a limit has saved up that was not asked for all it gives: the next pair would
// be given it. On a loop device that a cgroup held to 200 MiB/s, two requests of 4 KiB moved 186 to
// 278 MiB/s in 400 ms behind one of them that had moved 87 to 118, and 141 to 201, of 40
// measurements, if this came between. It has requests of the same size, since limits are of bytes
// or of requests.
func (p *pair) spender() *pair {
	return newPair(p.size, max(p.n, min(kneeSpenders*p.n, kneeMost, int(kneeSpent/p.size))))
}

// counted are the measurements that count.
func (p *pair) counted() []float64 {
	if len(p.rates) > 0 {
		return p.rates
	}
	return p.looks
}

// rate is their median.
func (p *pair) rate() float64 { m, _ := units.Median(p.counted()); return m }

// sure is their mean, in which none counts as more than 8 % off the median. A pair that reaches the
// limit of a device only while nothing disturbs it is as fast as any by the median of a few
// measurements, and slower in the next ones; one that has room to spare may be disturbed once.
func (p *pair) sure() float64 {
	m := p.rate()
	sum := 0.0
	for _, v := range p.counted() {
		sum += min(max(v, m*kneeNear), m*(2-kneeNear))
	}
	return sum / float64(len(p.counted()))
}

// hope is how fast a pair may be. In the survey it is the better of two looks, lest a device that
// stood still for one of them hides it.
func (p *pair) hope() float64 {
	switch {
	case len(p.rates) > 0:
		return p.sure()
	case len(p.looks) > 0:
		return slices.Max(p.looks)
	}
	return 0
}

// point is the pair in the result.
func (p *pair) point() result.KneePoint {
	out := result.KneePoint{RequestBytes: p.size, InFlight: p.n, Rate: p.rate(),
		Rounds: len(p.counted())}
	if p99, some := p.lat.Percentile(0.99); some && p.lat.Count() >= 1000 {
		out.P99NS = &p99
	}
	return out
}
