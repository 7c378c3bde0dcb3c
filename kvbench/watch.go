package kvbench

import (
	"context"
	"time"

	"kvbench/kvbench/record"
	"kvbench/tiers/cache"
	"kvbench/workloads"
)

// watch samples the gauges for timeline and live line and keeps an eye on the
// filesystem, until ctx ends.
func (t *trial) watch(ctx context.Context) {
	interval := time.Second
	if t.counted != nil && t.phase.Window > 0 {
		interval = min(interval, record.TimelineInterval(t.phase.Window))
	}
	told := time.Now() // in real time, also of a simulation
	last := told
	t.Clock.Every(ctx, interval, func() {
		if gap := time.Since(last) - interval; gap > stopShows && t.sim == nil {
			t.stopped.Add(int64(gap))
		}
		defer func() { last = time.Now() }()
		s := t.snapshot(t.Clock.Now())
		if time.Since(told) < progressInterval {
			return
		}
		told = time.Now()
		if t.ending.over.Err() != nil {
			return // what comes after the load is shown, and its workers may be stuck
		}
		t.Show(s)
	})
}

// stopShows is from which delay of a tick on the process cannot have run meanwhile: a busy machine
// delays one by some hundred milliseconds.
const stopShows = time.Second

// progressInterval is about a second: a bit less, lest every other tick of one comes too early.
const progressInterval = 990 * time.Millisecond

// snapshot is what the live line shows of a running load. It notes the gauges of queue
// and fill in the timeline.
func (t *trial) snapshot(now time.Duration) Snapshot {
	s := Snapshot{
		Stage: "running", Elapsed: now - t.windowStart(), Total: t.phase.Window,
		Live: t.Rec.Counters(), Tiers: []cache.Gauge{},
	}
	if start, _ := t.Rec.Window(); start == workloads.Never {
		s.Stage, s.Total = "warming up", t.phase.Warmup
	}
	if t.sim != nil {
		s.Stage = "simulating"
	}
	if t.counted == nil {
		return s
	}
	g := t.counted.Gauge(now)
	s.Queued, s.InFlight, s.Tiers = g.Queued, g.InFlight, t.Cache.Gauges(nil)
	for _, l := range s.Tiers {
		g.Bytes[l.Level] = l.Used
	}
	t.Rec.Gauge(now, g)
	return s
}

// windowStart is the moment the window opened, or will be reckoned from.
func (t *trial) windowStart() time.Duration {
	if start, _ := t.Rec.Window(); start != workloads.Never {
		return start
	}
	return t.loaded
}
