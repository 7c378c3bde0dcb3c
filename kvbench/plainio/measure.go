package plainio

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// measurement counts the bytes of streams from the start of all streams to end.
type measurement struct {
	clock   clock.Clock
	begun   time.Duration
	over    atomic.Bool
	ended   func() // called at the end; may be nil
	once    sync.Once
	took    time.Duration         // set by end
	tallies [tiers.NumOps][]tally // of each stream
}

func newMeasurement(c clock.Clock, streams int) *measurement {
	m := &measurement{clock: c, begun: c.Now()}
	for op := range m.tallies {
		m.tallies[op] = make([]tally, streams)
	}
	return m
}

// count counts a request of a stream. It returns false when the measurement has ended.
func (m *measurement) count(op tiers.Op, stream int, c tiers.Chunk) (more bool) {
	if m.over.Load() {
		return false
	}
	m.tallies[op][stream].add(c.Completed-m.begun, c.Bytes)
	return true
}

// end ends the measurement. Further calls have no effect.
func (m *measurement) end() {
	m.once.Do(func() {
		m.over.Store(true)
		m.took = m.clock.Now() - m.begun
		if m.ended != nil {
			m.ended()
		}
	})
}

// rate returns the rate of all streams in bytes per second, see mean.
func (m *measurement) rate(op tiers.Op) float64 { return mean(m.tallies[op], m.took) }

// tally counts the bytes of one stream by the time of completion, in parts of equal length. Each stream
// has a tally, so that streams need no lock to count.
type tally struct {
	part  time.Duration // length of a part; 0: no bytes are counted yet
	bytes [tallyParts]int64
	n     int64 // requests
}

// tallyParts is the number of parts. After tallyParts µs at least half of the parts are in use.
const tallyParts = 256

// add counts a completion at the time at since the start. If at is beyond the last part, add doubles the
// length of the parts.
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

// mean returns the rate of all tallies in bytes per second, from the start to took.
//
// It weights the bytes over time with the Hann window, 1 - cos: the middle weighs most, and both ends
// weigh nothing. Bytes ÷ time would lose the requests in flight at the end. With large requests on a
// saturated device these are a quarter of four requests. Devices with a rate limit move bytes in slices
// (cgroups: 100 ms), with a credit at the start, and one slice is a third of 300 ms. Periodic
// completions have their true rate from two periods on, because the window's transform vanishes at whole
// numbers from 2 on (Harris, On the use of windows for harmonic analysis, 1978).
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
