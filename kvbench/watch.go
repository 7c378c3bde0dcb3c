package kvbench

import (
	"context"
	"fmt"
	"time"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers/cache"
	"kvbench/tracing/host"
	"kvbench/workloads"
)

// watch samples the gauges for timeline and live line and keeps an eye on the
// filesystem, until ctx ends.
func (t *trial) watch(ctx context.Context) {
	interval := time.Second
	if t.cfg.Window > 0 {
		interval = min(interval, record.TimelineInterval(t.cfg.Window))
	}
	told := time.Now() // in real time, also of a simulation
	t.clock.Every(ctx, interval, func() {
		now := t.clock.Now()
		g, gauges := t.gauge(now)
		if time.Since(told) < progressInterval {
			return
		}
		told = time.Now()
		free := t.freeSpace()
		if t.cfg.Progress == nil {
			return
		}
		s := t.snapshot(now, g, gauges)
		s.Free = free
		t.cfg.Progress(s)
	})
}

// progressInterval is about a second: a bit less, lest every other tick of one comes too early.
const progressInterval = 990 * time.Millisecond

// gauge reads queue and fill and notes them in the timeline.
func (t *trial) gauge(now time.Duration) (record.Gauge, []cache.Gauge) {
	load, books := t.dispatch.account(now)
	g := record.Gauge{}
	for c := range load {
		g.Queued += load[c].Queued
		g.InFlight += books.Started[c] - books.Completed[c] - books.Failed[c]
	}
	gauges := t.stack.cache.Gauges(nil)
	for _, l := range gauges {
		g.Bytes[l.Level] = l.Used
	}
	t.rec.Gauge(now, g)
	return g, gauges
}

// snapshot is what the live line shows of a running load.
func (t *trial) snapshot(now time.Duration, g record.Gauge, gauges []cache.Gauge) Snapshot {
	s := Snapshot{
		Stage: "running", Elapsed: now - t.windowStart(), Total: t.cfg.Window,
		Live: t.rec.Counters(), Queued: g.Queued, InFlight: g.InFlight, Tiers: gauges, Free: -1,
	}
	if start, _ := t.rec.Window(); start == workloads.Never {
		s.Stage, s.Total = "warming up", t.cfg.Warmup
	}
	if t.sim != nil {
		s.Stage = "simulating"
	}
	return s
}

// freeSpace reads the free bytes behind the storage tier and ends the run when
// they fall below the floor that was left to others.
func (t *trial) freeSpace() int64 {
	dir := t.info.IO.CacheDir
	if dir == "" {
		return -1
	}
	fs, err := host.FilesystemOf(dir)
	if err != nil {
		return -1
	}
	if floor := t.cfg.Storage.FreeFloor; floor > 0 && fs.Free < floor {
		t.fail(fmt.Errorf("only %d bytes are free on the filesystem of %s, less than the %d that must stay free: something else is filling it, or -storage-capacity-gb is too large",
			fs.Free, dir, floor), result.EndedByCapacity)
	}
	return fs.Free
}

// say shows a stage that has nothing to count.
func (t *trial) say(_ context.Context, stage string, d time.Duration) {
	if d > 0 && t.cfg.Progress != nil {
		t.cfg.Progress(Snapshot{Stage: stage, Total: d, Free: -1})
	}
}
