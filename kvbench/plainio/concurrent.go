package plainio

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/kvbench"
	"kvbench/tiers/clock"
)

// concurrently calls f n times, each with its number, and waits for all of them. After the first
// failure it ends ctx and returns that failure. Once ctx has ended, f may wait only for I/O.
func concurrently(ctx context.Context, e *kvbench.Env, n int,
	f func(ctx context.Context, i int) error) error {
	if n == 0 {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := e.Clock.NewEvent()
	var left atomic.Int64
	left.Store(int64(n))
	var first sync.Once
	var failure error
	for i := range n {
		e.Go("plain I/O", func() {
			defer func() {
				if left.Add(-1) == 0 {
					ended.Fire()
				}
			}()
			if err := f(ctx, i); err != nil {
				first.Do(func() { failure = err })
				cancel(err)
			}
		})
	}
	if err := ended.Wait(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return failure
}

// measurement is the time that streams are measured for, from the start of all to end, after which
// nothing counts.
type measurement struct {
	clock clock.Clock
	begun time.Duration
	over  atomic.Bool
	ended func() // called at the end; nil: nothing
	once  sync.Once
	took  time.Duration // known when end has returned
}

func newMeasurement(c clock.Clock) measurement {
	return measurement{clock: c, begun: c.Now()}
}

// end ends the measurement; the first call counts.
func (m *measurement) end() {
	m.once.Do(func() {
		m.over.Store(true)
		m.took = m.clock.Now() - m.begun
		if m.ended != nil {
			m.ended()
		}
	})
}

// tally counts what one stream has moved, by time of completion, in parts of equal length. It is
// the stream's own: streams do not wait for each other to count.
type tally struct {
	part  time.Duration // 0: nothing is counted yet
	bytes [tallyParts]int64
	n     int64 // requests
}

// The number of parts. At least half are in use, unless the whole takes fewer microseconds than
// there are parts.
const tallyParts = 256

// add counts a completion at that time since the beginning. If the time is beyond the last part,
// parts become twice as long.
func (t *tally) add(at time.Duration, bytes int64) {
	t.part = max(t.part, time.Microsecond)
	for ; at >= tallyParts*t.part; t.part *= 2 {
		for i := range tallyParts / 2 {
			t.bytes[i] = t.bytes[2*i] + t.bytes[2*i+1]
		}
		clear(t.bytes[tallyParts/2:])
	}
	t.bytes[at/t.part] += bytes
	t.n++
}

// mean is the bytes per second of all tallies from the beginning to that time.
//
// It is weighted over time by Hann's window, 1 - cos: the middle weighs most and both ends nothing.
// Bytes ÷ time would lose the requests in flight at the end; with large requests on a saturated
// device they are a quarter of four. And limited devices give bytes in slices (cgroups: 100 ms),
// with a credit at first: one slice is a third of 300 ms. Periodic completions get their true rate
// from two periods on, because the window's transform vanishes at whole numbers from 2 on (Harris,
// On the use of windows for harmonic analysis, 1978).
func mean(all []tally, took time.Duration) (rate float64) {
	for i := range all {
		t := &all[i]
		for at, bytes := range t.bytes {
			middle := (float64(at) + 0.5) * float64(t.part) / float64(took)
			if bytes != 0 && middle < 1 {
				rate += float64(bytes) * (1 - math.Cos(2*math.Pi*middle)) / took.Seconds()
			}
		}
	}
	return rate
}
