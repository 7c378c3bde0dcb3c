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
	shown := time.Now() // in real time, also in a simulation
	last := shown
	t.Clock.Every(ctx, interval, func() {
		if gap := time.Since(last) - interval; gap > stopShows && t.sim == nil {
			t.stopped.Add(int64(gap))
		}
		defer func() { last = time.Now() }()
		s := t.snapshot(t.Clock.Now())
		if time.Since(shown) < progressInterval {
			return
		}
		shown = time.Now()
		if t.ending.over.Err() != nil {
			return // what comes after the load is shown, and its workers may be stuck
		}
		t.Show(s)
	})
}

// stopShows is the delay of a tick above which the process cannot have run meanwhile: a busy
// machine delays a tick by some hundred milliseconds.
const stopShows = time.Second

// progressInterval is about a second: a bit less, or every other tick of a second would come too
// early.
const progressInterval = 990 * time.Millisecond

// snapshot returns the live line's data of a running load. It also notes the gauges of queue and
// fill in the timeline.
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

// windowStart is the moment at which the window opened, or from which it will count.
func (t *trial) windowStart() time.Duration {
	if start, _ := t.Rec.Window(); start != workloads.Never {
		return start
	}
	return t.loaded
}
