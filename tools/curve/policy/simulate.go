package policy

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/transfer"
	"kvbench/workloads/reuse"
)

// Config says what caches do.
type Config struct {
	Policy cache.Policy
	Above  int64 // bytes of a cpu tier above the storage, 0 = none
	// Curve has the sizes, the warm-up and the intervals of the exact curve.
	Curve reuse.Config
}

// Estimate is what caches of some capacities do.
type Estimate struct {
	Points   []reuse.Point // as many as were asked for, in their order
	Share    float64       // of the beginnings that were looked at
	Requests int           // of these
	Joined   int           // up to so many blocks as one, 1 = none
	// Off is by how much, at most, the sample's hit ratio with least recent use is another than the
	// exact one: what was corrected for.
	Off float64
}

// ErrEmpty reports a sample none of whose requests counts.
var ErrEmpty = errors.New("no request of the sample comes after the warm-up")

// Estimate reckons what caches of the given capacities do, of whose points with least recent use
// exact has those of the whole trace. It changes the sample where that is too large.
func (c *Config) Estimate(ctx context.Context, s *Sample, exact *reuse.Summary, of []reuse.Point,
) (e Estimate, err error) {
	pieces := s.join()
	e = Estimate{Points: make([]reuse.Point, len(of)), Share: s.Share(), Requests: s.Requests(),
		Joined: s.joined}
	// What a cache is compared with has the room of both its tiers.
	like, scaled := make([]reuse.Point, len(of)), make([]int64, len(of))
	for i := range of {
		least := of[i].Capacity + int64(cache.KeepRatio*float64(c.Above))
		at := slices.IndexFunc(exact.Points, func(p reuse.Point) bool {
			return p.Capacity >= least
		})
		if at < 0 { // everything fits
			at = len(exact.Points) - 1
		}
		like[i] = exact.Points[at]
		scaled[i] = s.scale(like[i].Capacity)
	}
	cfg := c.Curve
	cfg.Capacities = scaled
	if len(s.requests) > 0 { // the warm-up begins with the trace
		cfg.Warmup = max(0, cfg.Warmup-(s.requests[0].at-s.origin))
	}
	lru, err := s.leastRecent(cfg)
	if err != nil {
		return e, err
	}
	if lru.Blocks == 0 {
		return e, ErrEmpty
	}
	errs := make([]error, len(of))
	var wait sync.WaitGroup
	// Each has tables of its own, of some hundred bytes for a block that it holds: no more of them
	// at a time than there are processors.
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range of {
		free <- struct{}{}
		wait.Go(func() {
			defer func() { <-free }()
			e.Points[i], errs[i] = c.simulate(ctx, s, pieces, s.scale(of[i].Capacity))
		})
	}
	wait.Wait()
	times := float64(exact.Blocks) / float64(lru.Blocks)
	for i := range e.Points {
		p := &e.Points[i]
		at := slices.IndexFunc(lru.Points, func(p reuse.Point) bool {
			return p.Capacity == scaled[i]
		})
		sampled := lru.Points[at]
		e.Off = max(e.Off, math.Abs(float64(sampled.Hits)/float64(lru.Blocks)-
			float64(like[i].Hits)/float64(exact.Blocks)))
		if e.Share < 1 {
			correct(p, &like[i], &sampled, times, exact)
		}
		p.Capacity, p.Asked = of[i].Capacity, of[i].Asked
		p.Small = of[i].Small || s.scale(p.Capacity) < lru.LargestRequest
		p.Full, p.Beyond = -1, -1
		if c.Above == 0 { // what is not evicted does not depend on the order of eviction
			p.Full, p.Beyond = of[i].Full, of[i].Beyond
		}
	}
	return e, errors.Join(errs...)
}

// scale is the capacity of the sample's cache for that of one of the whole trace.
func (s *Sample) scale(bytes int64) int64 {
	return max(1, int64(math.Round(s.Share()*float64(bytes))))
}

// moment is a clock that stands where it is set.
type moment struct {
	*clock.Wall
	now time.Duration
}

// Now implements clock.Clock.
func (m *moment) Now() time.Duration { return m.now }

// simulate lets a cache serve the sample.
func (c *Config) simulate(ctx context.Context, s *Sample, pieces []piece, capacity int64,
) (p reuse.Point, err error) {
	at := &moment{Wall: clock.NewWall()}
	// Others move nothing when it is read, which spares a third of the time.
	n := &counter{point: &p,
		reads: c.Policy.Promote != cache.Never || c.Policy.Place == cache.Selective}
	levels := []cache.Level{{Kind: tiers.Storage, Capacity: capacity}}
	if c.Above > 0 {
		levels = slices.Insert(levels, 0, cache.Level{Kind: tiers.CPU, Capacity: s.scale(c.Above)})
	}
	held, err := cache.New(cache.Config{Levels: levels, Policy: c.Policy, Clock: at,
		Transfer: &transfer.Transfer{Clock: at}, Observer: n})
	if err != nil {
		return p, err
	}
	lease, wants := cache.Lease{Prefix: true}, []cache.Want(nil)
	for i := range s.requests {
		r := &s.requests[i]
		at.now = r.at
		left, count := r.context, 0
		wants = wants[:0]
		for blocks := 0; blocks < r.blocks; count++ {
			tokens := min(left, int(pieces[count].blocks)*r.size)
			wants = append(wants, cache.Want{Key: s.names[pieces[count].first],
				Size: c.Curve.Sizer.Bytes(tokens), Write: true})
			left -= tokens
			blocks += int(pieces[count].blocks)
		}
		n.begin(r.at-s.origin, &c.Curve)
		held.Decide(&lease, wants)
		n.serve(ctx, &lease, wants, pieces[:count], r)
		lease.Close(ctx, cache.Tag{})
		pieces = pieces[count:]
	}
	n.endInterval()
	return p, held.Close(ctx)
}
