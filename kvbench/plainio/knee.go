package plainio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads/profile"
)

// Knee finds the fewest bytes in flight, request size times requests, that move as much as any do,
// at random places inside files; then its window does just that. How it looks for them is hunt's.
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
)

// A measurement goes on, up to eight times as long as it takes at least, until four requests of
// each place in flight have ended, in the survey three: it is looked at after each quarter of that
// time.
const (
	kneeLonger = 8
	kneeParts  = 4
	kneeLimit  = 35 * time.Second
)

// Prepare writes the files, finds the knee and gives each worker its buffer.
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
	r.Footprint = int64(len(r.files)) * r.size
	m, err := newMover(b.Env, r.level, "knee/")
	if err != nil {
		return err
	}
	m.chunk = KneeSize
	if r.pool, err = m.buffers(ctx, KneeFlight/KneeSize); err != nil {
		return err
	}
	r.knee, err = (&hunt{most: min(KneeSize, r.size), now: b.Clock.Now, limit: limit,
		least:   max(pageSize, int64(r.level.Tier.Traits().Align)),
		measure: r.measure}).run(ctx)
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

// measure says what a pair moves (see mean), 0 where too little ended to say.
func (r *Knee) measure(ctx context.Context, p *pair, least time.Duration) (rate float64,
	err error) {
	r.rungs++
	var over atomic.Bool
	var ended atomic.Int64
	rounds := int64(4)
	switch {
	case least < kneeSurvey: // a spender's, of which nobody wants to know the rate
		rounds = 0
	case least == kneeSurvey:
		rounds = 3
	}
	begun, most := r.env.Clock.Now(), r.env.Clock.Now()+kneeLonger*least
	// Of a slow storage too few requests end in that time: it gets more.
	var mu sync.Mutex // guards took, and that over ends it
	took := least
	var stop func()
	stop = func() {
		mu.Lock()
		defer mu.Unlock()
		if over.Load() {
			return
		}
		if ended.Load() >= rounds*int64(p.n) || begun+took >= most {
			over.Store(true)
			return
		}
		took += least / kneeParts
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
	err = beside(ctx, r.env, p.n, func(ctx context.Context, i int) error {
		t, h := &tallies[i], &hists[i%len(hists)]
		n := int64(0)
		next := r.anywhere(profile.NewStream(r.bench.Seed, r.rungs<<16+i), &n, p.size, over.Load)
		return r.cut(p.size, i).pass(ctx, r.env.Clock, &tiers.IO{}, next, func(c tiers.Chunk) bool {
			if over.Load() {
				return false
			}
			t.add(c.Done-begun, c.Bytes)
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
		return 0, err
	}
	for i := range tallies {
		if tallies[i].n < 2 { // it says nothing of this one, and the sum not of all
			return 0, nil
		}
	}
	for i := range hists {
		p.lat.Merge(hists[i].Histogram)
	}
	return mean(tallies, took), nil
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
