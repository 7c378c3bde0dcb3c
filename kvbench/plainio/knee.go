package plainio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads/profile"
)

// Knee finds the fewest bytes in flight, request size times requests, that move as much as any do,
// at random places inside files; then its window does just that.
//
// First it surveys: pairs of a size (4 KiB, 16 KiB, … 16 MiB) and a number (1, 2, … 256), by the
// bytes that they have in flight, until sixteen times as many have brought nothing. Then it
// measures those again that come near the fastest, in turns, and compares what three of four
// measurements came to: one short measurement of each would make the luckiest the fastest.
type Knee struct {
	Blocks
	// Limit bounds the search, filling included, but for the measurement that is under way; 0 = 35
	// s: with a window of 10 s and what is around them a minute. A storage so slow that its first
	// files take longer is waited for.
	Limit time.Duration

	pool  *loan // of KneeSize each
	rungs int
	knee  result.Knee
}

var _ Routine = (*Knee)(nil)

// How far the grid goes: 256 MiB in flight are 8 GiB/s where a request takes 32 ms, and more memory
// than a benchmark should take unasked.
const (
	KneeSize   = 16 << 20  // bytes of the largest requests
	KneeFlight = 256 << 20 // bytes in flight
	kneeMost   = 256       // requests in flight
	kneeStep   = 4         // from one size to the next

	kneeGrowth = 1.02 // what is less than that is no growth
	kneeFlat   = 4    // doublings of the bytes in flight that bring none end the survey
	kneeWithin = 0.98 // of the fastest is as fast
	kneeNear   = 0.92 // of it in the survey may be

	kneeRechecks, kneeRounds = 8, 5 // pairs that are measured again, and how often
)

// How long a pair is measured, at first and again; longer, up to eight times, until four requests
// of each place in flight have ended.
const (
	kneeSurvey, kneeRecheck = 200 * time.Millisecond, 400 * time.Millisecond
	kneeLonger              = 8
	kneeBins                = 64 // of time
	kneeLimit               = 35 * time.Second
)

// Prepare writes the files, finds the knee and gives each worker its buffer.
func (r *Knee) Prepare(ctx context.Context, b *Bench) (err error) {
	begun := b.Clock.Now()
	limit := begun + cmp.Or(r.Limit, kneeLimit)
	if err := r.lay(b, KneeSize); err != nil {
		return err
	}
	if err := r.fill(ctx, r.Footprint, begun+(limit-begun)/3); err != nil {
		return err
	}
	r.Footprint = int64(len(r.files)) * r.size
	m, err := newMover(b.Env, r.level, "knee/")
	if err != nil {
		return err
	}
	m.chunk = KneeSize
	if r.pool, err = m.buffers(ctx, KneeFlight/KneeSize); err != nil {
		return err
	}
	err = r.search(ctx, limit)
	if err = errors.Join(err, r.pool.free()); err != nil {
		return fmt.Errorf("looking for the knee: %w", err)
	}
	r.knee.NS = int64(b.Clock.Now() - begun)
	r.Size, b.Workers = r.knee.RequestBytes, r.knee.InFlight
	b.Transfer.Chunk = int(r.Size) // of the ladder after the window, too
	return r.equip(ctx)
}

// Report adds what was found.
func (r *Knee) Report(res *result.Result) {
	r.Blocks.Report(res)
	if r.knee.InFlight > 0 {
		res.PlainIO.Knee = &r.knee
		res.IO.ChunkBytes = int(r.Size)
	}
}

// pair is a point of the grid, and what was measured of it.
type pair struct {
	size  int64
	n     int
	rates []float64
	lat   *result.Histogram // of all rounds
}

func (p *pair) inFlight() int64 { return p.size * int64(p.n) }

func (p *pair) rate() float64 { m, _ := units.Median(p.rates); return m }

// sure is what three of four measurements came to. A pair that reaches the limit of a device only
// while nothing disturbs it is as fast as any by the median of a few measurements, and slower in
// the next ones; pairs that have room to spare come to the limit in all of them.
func (p *pair) sure() float64 {
	s := slices.Sorted(slices.Values(p.rates))
	return s[len(s)/4]
}

// search fills in the knee.
func (r *Knee) search(ctx context.Context, limit time.Duration) error {
	all, why, err := r.survey(ctx, limit)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("no size and number of requests ended often enough to be measured: the " +
			"storage is too slow for this")
	}
	near := nearest(all)
	// Until who is near has been measured often enough, however often that changes.
	for more := true; more && r.env.Clock.Now() < limit; near = nearest(all) {
		// Who is near changes when the lucky ones are known better.
		more = false
		for _, p := range near {
			if len(p.rates) > kneeRounds || r.env.Clock.Now() >= limit {
				continue
			}
			more = true
			if err := r.measure(ctx, p, kneeRecheck); err != nil {
				return err
			}
		}
	}
	r.knee = kneeOf(all, near, why)
	return nil
}

// survey measures the grid, by bytes in flight, and says why it ended. Who is too slow to be
// measured is not among them.
func (r *Knee) survey(ctx context.Context, limit time.Duration) (all []*pair, why string,
	err error) {
	begun, best, flat := r.env.Clock.Now(), 0.0, 0
	// By bytes in flight, so that what is slow and large comes last: a storage that is full by then
	// is never asked for it, and would take minutes for it.
	for flight := int64(pageSize); flight <= KneeFlight; flight *= 2 {
		level := 0.0
		for size := int64(pageSize); size <= min(flight, KneeSize, r.size); size *= kneeStep {
			p := &pair{size: size, n: int(flight / size)}
			if p.n > kneeMost {
				continue
			}
			if len(all) > 0 && r.env.Clock.Now() > begun+(limit-begun)*2/3 {
				return all, result.KneeTime, nil
			}
			if err := r.measure(ctx, p, kneeSurvey); err != nil {
				return nil, "", err
			}
			if len(p.rates) > 0 {
				all = append(all, p)
				level = max(level, p.rate())
			}
		}
		if flat++; level > best*kneeGrowth {
			flat = 0
		}
		if best = max(best, level); flat == kneeFlat {
			return all, result.KneePlateau, nil
		}
	}
	return all, result.KneeGrid, nil
}

// pageSize is that of the smallest requests.
const pageSize = 4096

// nearest are those pairs that may be the knee, by what is known: the ones with fewest bytes in
// flight of those near the fastest, and the two fastest.
func nearest(all []*pair) (near []*pair) {
	byRate := slices.SortedFunc(slices.Values(all),
		func(a, b *pair) int { return cmp.Compare(b.rate(), a.rate()) })
	for _, p := range all {
		if p.rate() >= kneeNear*byRate[0].rate() && len(near) < kneeRechecks-2 {
			near = append(near, p)
		}
	}
	for _, p := range byRate[:min(2, len(byRate))] {
		if !slices.Contains(near, p) {
			near = append(near, p)
		}
	}
	return near
}

// kneeOf is the answer. All come by their bytes in flight; of equally many the faster is taken.
func kneeOf(all, near []*pair, why string) (k result.Knee) {
	k.EndedBy = why
	sure := 0.0
	for _, p := range near {
		k.Best, sure = max(k.Best, p.rate()), max(sure, p.sure())
	}
	var knee *pair
	for _, p := range all {
		point := result.KneePoint{RequestBytes: p.size, InFlight: p.n, Rate: p.rate(),
			Rounds: len(p.rates)}
		if p99, some := p.lat.Percentile(0.99); some && p.lat.Count() >= 1000 {
			point.P99NS = &p99
		}
		k.Points = append(k.Points, point)
		if !slices.Contains(near, p) || p.sure() < kneeWithin*sure {
			continue
		}
		if knee == nil || p.inFlight() == knee.inFlight() && p.rate() > knee.rate() {
			knee = p
			k.RequestBytes, k.InFlight, k.Rate, k.P99NS = p.size, p.n, p.rate(), point.P99NS
		}
	}
	return k
}

// tally is what one place in flight has done: its own, so that places do not wait for each other.
type tally struct {
	bytes [kneeBins * kneeLonger]int64 // by the time of completion, in parts of the least time
	n     int64
}

// measure adds a measurement to a pair.
//
// The rate is a mean over time in which the middle weighs most and both ends nothing (Hann's
// window, 1 - cos): devices with a limit give bytes by slices (cgroups: 100 ms), with a credit at
// first. Bytes over time would say more or less by a slice, a third of 300 ms, and as much again
// for the credit; and large requests would lose what is under way at the end. Here what comes back
// in periods says what it is, once a measurement has two of them (its transform vanishes at whole
// numbers from 2 on; Harris, On the use of windows for harmonic analysis, 1978).
func (r *Knee) measure(ctx context.Context, p *pair, least time.Duration) error {
	r.rungs++
	var over atomic.Bool
	var ended atomic.Int64
	begun, most := r.env.Clock.Now(), r.env.Clock.Now()+kneeLonger*least
	bin := least / kneeBins
	// Of a slow storage too few requests end in that time: it gets more. A timer that is late may
	// look when all places have come to the end of their bins, which ends the measurement, too.
	var mu sync.Mutex // guards took, and that over ends it
	took := least
	var stop func()
	stop = func() {
		mu.Lock()
		defer mu.Unlock()
		if over.Load() {
			return
		}
		if ended.Load() >= 4*int64(p.n) || begun+took >= most {
			over.Store(true)
			return
		}
		took += least
		r.env.Clock.At(begun+took, stop)
	}
	r.env.Clock.At(begun+took, stop)
	tallies := make([]tally, p.n)
	var hists [4]struct {
		sync.Mutex
		*result.Histogram
	}
	for i := range hists {
		hists[i].Histogram = result.NewHistogram(units.Nanoseconds)
	}
	err := beside(ctx, r.env, p.n, func(ctx context.Context, i int) error {
		t, h := &tallies[i], &hists[i%len(hists)]
		n := int64(0)
		next := r.anywhere(profile.NewStream(r.bench.Seed, r.rungs<<16+i), &n, p.size, over.Load)
		return r.cut(p.size, i).pass(ctx, r.env.Clock, &tiers.IO{}, next, func(c tiers.Chunk) bool {
			at := int((c.Done - begun) / bin)
			if over.Load() || at >= len(t.bytes) {
				return false
			}
			t.bytes[at] += c.Bytes
			t.n++
			ended.Add(1)
			h.Lock()
			h.Record(int64(c.Ended - c.Begun))
			h.Unlock()
			return true
		})
	})
	mu.Lock()
	over.Store(true)
	mu.Unlock()
	if err != nil {
		return err
	}
	bins, rate := int(took/least)*kneeBins, 0.0
	for i := range tallies {
		t := &tallies[i]
		if t.n < 2 { // it says nothing of this one, and the sum not of all
			return nil
		}
		for at, bytes := range t.bytes[:bins] {
			rate += float64(bytes) *
				(1 - math.Cos(2*math.Pi*(float64(at)+0.5)/float64(bins))) / took.Seconds()
		}
	}
	p.rates = append(p.rates, rate)
	if p.lat == nil {
		p.lat = result.NewHistogram(units.Nanoseconds)
	}
	for i := range hists {
		p.lat.Merge(hists[i].Histogram)
	}
	return nil
}

// cut is the i-th buffer of a size.
func (r *Knee) cut(size int64, i int) lent {
	at := int64(i) * size
	b := r.pool.bufs[at/KneeSize]
	if b.B != nil {
		b.B = b.B[at%KneeSize : at%KneeSize+size : at%KneeSize+size]
	}
	return b
}
