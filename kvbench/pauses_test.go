package kvbench

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/record"
	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/tiers"
)

// TestPauses: a wake-up that is late by a second or more is a pause, unless the thread waited for a CPU. The clock
// is set by hand.
func TestPauses(t *testing.T) {
	const ms = time.Millisecond
	var now time.Duration
	p := newPauses(func() time.Duration { return now })
	waited := time.Duration(0)
	wake := func(after, cpu time.Duration) { now += after; waited += cpu; p.tick(now, waited) }
	wake(100*ms, 0)
	wake(1050*ms, 0) // late by less than a second
	wake(6100*ms, 0)
	assert.Equal(t, []pause{{1250 * ms, 7250 * ms}}, p.list)
	wake(6100*ms, 5000*ms) // a busy machine
	wake(6100*ms, 3000*ms)
	assert.Len(t, p.list, 1)
	wake(6100*ms, 2900*ms) // mostly a pause
	assert.Equal(t, pause{19550 * ms, 25550 * ms}, p.list[1])
	wake(100*ms, 0)
	assert.Zero(t, p.within(99*ms))
	assert.Equal(t, 900*ms, p.within(time.Second))
	assert.Equal(t, 6*time.Second, p.within(7*time.Second))
	assert.Equal(t, 12*time.Second, p.within(time.Hour))

	// The thread has not woken up yet: the caller waits for it.
	now += 6 * time.Second
	got := make(chan time.Duration)
	go func() { got <- p.within(6 * time.Second) }()
	p.tick(now+100*ms, waited)
	assert.GreaterOrEqual(t, <-got, 5900*ms)
}

// TestRequestsInAPause have no latency, and their bytes count. A trial with a pause in its window is not quoted.
func TestRequestsInAPause(t *testing.T) {
	rec := record.New(1)
	rec.Paused = func(length time.Duration) time.Duration { return max(0, length-5*time.Second) }
	rec.Open(0, time.Minute)
	for _, took := range []time.Duration{time.Second, 6 * time.Second} {
		c := tiers.Chunk{Op: tiers.Read, Bytes: 1 << 20, Ended: 10 * time.Second, Completed: 10 * time.Second}
		c.Begun = c.Ended - took
		c.Submitted = c.Begun
		assert.True(t, rec.Block(0, c))
	}
	live := rec.Counters()
	assert.EqualValues(t, 2<<20, live.Bytes[tiers.Storage][tiers.Read])
	rec.SetEnd(time.Minute)
	r := record.Build(record.Info{}, rec)
	requests := r.Histograms["storage_read_request"]
	assert.EqualValues(t, 1, requests.Count)
	assert.InDelta(t, 1e9, float64(requests.Max), 1e6)
	for _, in := range []bool{false, true} {
		r.Pauses = []result.Pause{{Rank: 3, Time: "2026-11-29T05:12:33Z", LengthNS: 6e9, InWindow: in}}
		doubts := report.Doubts([]*result.Result{r}, "read-B/s")
		const why = "rank 3, from 2026-11-29T05:12:33Z on for 6 s in the window the process of this rank did not run: " +
			"leave it and its machine running"
		assert.Equal(t, in, slices.Contains(doubts, why), doubts)
	}
}
