package plainio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads/users"
)

// Knee measures a grid of request sizes and numbers of requests in flight, at random offsets in files.
// The knee is the cell with the fewest bytes in flight that is within 5 % of the best rate, see choose.
// The window measures the knee.
//
// Each cell is measured in three rounds, and each round has its own random order. So a disturbance, or
// the burst credit that a cgroup saves up during a slow cell, hits a different cell in each round. The
// median of the three rounds leaves such outliers out.
type Knee struct {
	Blocks
	// Limit is the maximum time for the filling and the grid, plus the measurement in progress. 0 = 50
	// s. The first file has no time limit.
	Limit time.Duration
	// Brief halves the length of a measurement.
	Brief bool

	shared   *lease // buffers of KneeSize each
	measured int    // measurements so far: each has its own random offsets
	knee     result.Knee
}

var _ Routine = (*Knee)(nil)

const (
	kneeLimit = 50 * time.Second
	// A measurement takes at least two of the slices of 100 ms in which cgroups give bytes, see mean.
	kneeTime = 200 * time.Millisecond
	// A measurement continues until kneeCompleted requests per request in flight have completed, for at
	// most kneeExtend times its length. It is extended by 1/kneeParts of its length.
	kneeExtend    = 8
	kneeParts     = 4
	kneeCompleted = 3
)

// Forecast: the files and the grid take what the reserve leaves of the time.
func (r *Knee) Forecast() kvbench.Forecast {
	f := r.Blocks.Forecast()
	f.Search = cmp.Or(r.Limit, kneeLimit) * 4 / 5
	return f
}

// Prepare writes the files, measures the grid and gives each worker its buffer.
func (r *Knee) Prepare(ctx context.Context, b *Bench) (err error) {
	begun := b.Clock.Now()
	limit := begun + cmp.Or(r.Limit, kneeLimit)
	if err := r.lay(b, KneeSize); err != nil {
		return err
	}
	if r.Footprint < KneeSize {
		return fmt.Errorf("requests of up to %s have %s of the tier to go to: give at least that "+
			"much by -ceiling-size-gb, or twice of it by -storage-capacity-gb",
			units.Bytes.Text(KneeSize), units.Bytes.Text(r.Footprint))
	}
	if err := r.fill(ctx, r.Footprint, begun+(limit-begun)/4); err != nil {
		return err
	}
	r.Footprint = int64(len(r.files)) * r.fileSize
	if r.shared, err = r.buffers(ctx, KneeFlight/KneeSize, KneeSize); err != nil {
		return err
	}
	err = r.grid(ctx, limit)
	r.knee.NS = int64(b.Clock.Now() - begun)
	if err = errors.Join(err, r.shared.free()); err != nil {
		return fmt.Errorf("measuring the grid of the knee: %w", err)
	}
	r.Size, b.Workers = r.knee.RequestBytes, r.knee.InFlight
	return r.start(ctx)
}

// grid measures all cells in three rounds and finds the knee. After an error the result has the cells
// measured so far.
func (r *Knee) grid(ctx context.Context, limit time.Duration) error {
	least := kneeTime
	if r.Brief {
		least /= 2
	}
	var cells []*cell
	r.knee.OrderSeed, r.knee.EndedBy = r.bench.Seed, result.KneeInterrupted
	defer func() { r.knee.Points = points(cells) }()
	pace, err := r.probe(ctx, least)
	if err != nil {
		return err
	}
	smallest := max(pageSize, int64(r.tier.Traits().Align))
	// A fifth of the time is a reserve for a busy machine.
	cells = newGrid(smallest, pace, (limit-r.bench.Clock.Now())*4/5)
	ended := result.KneeGrid
	for i, c := range order(cells, r.bench.Seed) {
		if i > 0 && r.bench.Clock.Now() >= limit {
			ended = result.KneeTime
			break
		}
		rate, err := r.measure(ctx, c, least)
		if err != nil {
			return err
		}
		if rate > 0 {
			c.rates = append(c.rates, rate)
		}
	}
	r.knee.EndedBy, r.knee.Points = ended, points(cells)
	if !choose(&r.knee) {
		return errors.New("no request size and number in flight completed often enough to be " +
			"measured: the storage is too slow for this")
	}
	return nil
}

// probe estimates the speed of the storage. It measures small requests and requests of 1 MiB, with 1, 4,
// 16 and 64 in flight, as long as the rate grows.
func (r *Knee) probe(ctx context.Context, least time.Duration) (p pace, err error) {
	p.least = least
	size := max(pageSize, int64(r.tier.Traits().Align))
	for range 2 {
		best := float64(size) / (kneeExtend * least).Seconds() // if even one does not complete
		for n := int64(1); n <= kneeMost && float64(n*size) <= 2*max(best, float64(size)); n *= 4 {
			rate, err := r.measure(ctx, newCell(size, int(n)), least)
			if err != nil {
				return p, err
			}
			if p.latency == 0 { // of the first small one
				p.latency = seconds(float64(size) / max(best, rate))
			}
			if rate <= 1.1*best {
				break
			}
			best = rate
		}
		p.bytes, p.requests = max(p.bytes, best), max(p.requests, best/float64(size))
		size = 1 << 20
	}
	return p, nil
}

// Report adds the grid and the knee.
func (r *Knee) Report(res *result.Result) {
	r.Blocks.Report(res)
	if len(r.knee.Points) > 0 {
		res.PlainIO.Knee = &r.knee
	}
	if r.knee.InFlight > 0 {
		res.IO.ChunkBytes = int(r.Size)
	}
}

// measure returns the rate of a cell in bytes per second, see mean. It returns 0 if fewer than two
// requests of a stream completed.
func (r *Knee) measure(ctx context.Context, p *cell, least time.Duration) (rate float64,
	err error) {
	r.measured++
	m := newMeasurement(r.bench.Clock, p.n)
	hists := make([]struct { // so that lanes do not wait for each other
		sync.Mutex
		*result.Histogram
	}, r.bench.Lanes)
	ended := func() (n int64) {
		for i := range hists {
			hists[i].Lock()
			n += hists[i].Count()
			hists[i].Unlock()
		}
		return n
	}
	var stop func()
	stop = func() {
		now := m.clock.Now()
		switch {
		case m.over.Load():
		case ended() >= kneeCompleted*int64(p.n), now >= m.begun+kneeExtend*least:
			m.end()
		default:
			m.clock.At(now+least/kneeParts, stop)
		}
	}
	for i := range hists {
		hists[i].Histogram = result.NewHistogram(units.Nanoseconds)
	}
	m.clock.At(m.begun+least, stop)
	err = r.bench.Concurrently(ctx, p.n, func(ctx context.Context, i int) error {
		buf := r.cut(p.size, i)
		h := &hists[buf.lane]
		n := int64(0)
		next := r.anywhere(buf.lane, users.NewStream(r.bench.Seed, r.measured<<16+i), &n, p.size,
			m.over.Load)
		return buf.pass(ctx, r.bench.Clock, &tiers.IO{}, next, func(c tiers.Chunk) bool {
			if !m.count(r.Op, i, c) {
				return false
			}
			h.Lock()
			h.Record(int64(c.Ended - c.Begun))
			h.Unlock()
			return true
		})
	})
	m.end()
	if err != nil {
		return 0, err
	}
	if slices.ContainsFunc(m.tallies[r.Op], func(t tally) bool { return t.n < 2 }) {
		return 0, nil
	}
	for i := range hists {
		p.lat.Merge(hists[i].Histogram)
	}
	return m.rate(r.Op), nil
}

// cut returns the i-th buffer of a size.
func (r *Knee) cut(size int64, i int) leased {
	at := int64(i) * size
	b := r.shared.bufs[at/KneeSize]
	b.lane = i % r.bench.Lanes
	if b.B != nil {
		b.B = b.B[at%KneeSize : at%KneeSize+size : at%KneeSize+size]
	}
	return b
}
