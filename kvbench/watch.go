package kvbench

import (
	"context"
	"sync"
	"time"

	"kvbench/kvbench/record"
	"kvbench/tiers/cache"
	"kvbench/tiers/ioengine"
	"kvbench/workloads"
)

// Stages of a trial that set no counters in the Snapshot.
const (
	opening    = "opening the storage tier"
	reclaiming = "reclaiming files of an earlier run"
	waiting    = "waiting for I/O in flight"
	removing   = "removing the trial's files"
)

// liveLine is the latest snapshot.
type liveLine struct {
	drawing   sync.Mutex // held during a call of Config.Progress, which a stopped terminal blocks
	mu        sync.Mutex
	last      Snapshot
	at, drawn time.Time // when last was taken, and when it was shown
	over      bool      // the live line has ended
}

// stage starts a stage, which the watchdog shows every second. "" shows no stage.
func (t *trial) stage(name string) {
	t.live.mu.Lock()
	defer t.live.mu.Unlock()
	t.live.last, t.live.at = Snapshot{Stage: name, Free: -1}, time.Now()
	t.live.drawn = t.live.at // a short stage is not shown
}

// show shows a snapshot at once.
func (t *trial) show(s Snapshot) {
	t.live.mu.Lock()
	t.live.last, t.live.at, t.live.drawn = s, time.Now(), time.Time{}
	t.live.mu.Unlock()
	t.redraw()
}

// redraw shows the latest snapshot again, if it was last shown a second ago. It adds the requests that
// the storage has not answered, because the stage may hang.
func (t *trial) redraw() {
	l := &t.live
	if t.cfg.Progress == nil || !l.drawing.TryLock() {
		return
	}
	defer l.drawing.Unlock()
	l.mu.Lock()
	now, s := time.Now(), l.last
	pause := progressInterval
	if s.Tiers != nil { // the next snapshot of the load comes within two seconds; this one again has rate 0
		pause = 2 * progressInterval
	}
	due := s.Stage != "" && !l.over && now.Sub(l.drawn) >= pause
	if due {
		l.drawn = now
	}
	s.Elapsed += now.Sub(l.at)
	l.mu.Unlock()
	if !due {
		return
	}
	if s.Stage == opening || s.Stage == removing {
		s.Done, s.DoneTotal = t.cfg.Storage.Removal.Progress()
		if s.Stage == opening && s.DoneTotal > 0 {
			s.Stage = reclaiming
		}
	}
	reading := false // the source waits for its input: no I/O of the storage
	for _, stuck := range t.stuck(ioengine.StallAfter) {
		s.Stuck, s.StuckFor = s.Stuck+1, max(s.StuckFor, stuck.For)
		reading = reading || stuck.What == "reading"
	}
	// A load submits a request whenever one completes: if the youngest is old, none has completed.
	if s.Silent = s.StuckFor; !reading && s.StuckFor >= silentAfter {
		for _, r := range t.stuck(0) {
			s.Silent = min(s.Silent, r.For)
		}
	}
	if reading || s.Silent < silentAfter {
		s.Silent = 0
	}
	t.cfg.Progress(s)
}

// silentAfter is the time without a completion after which a user has to know that the storage may hang.
const silentAfter = 10 * time.Second

// watch samples the gauges for the timeline and the live line until ctx ends.
func (t *trial) watch(ctx context.Context) {
	interval := time.Second
	if t.counted != nil && t.phase.Window > 0 {
		interval = min(interval, record.TimelineInterval(t.phase.Window))
	}
	shown := time.Now() // real time, also in a simulation
	t.Clock.Every(ctx, interval, func() {
		s := t.snapshot(t.Clock.Now())
		if time.Since(shown) < progressInterval {
			return
		}
		shown = time.Now()
		if t.ending.over.Err() != nil {
			return // the live line shows the next stage already
		}
		t.Show(s)
	})
}

// progressInterval is a bit less than a second. With a full second every other tick would come too
// early.
const progressInterval = 990 * time.Millisecond

// snapshot returns the live line's data of a running load. It also records the queue length, the
// requests in flight and the bytes of each tier in the timeline.
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

// windowStart returns the moment at which the window opened. Before that it returns the start of the
// load.
func (t *trial) windowStart() time.Duration {
	if start, _ := t.Rec.Window(); start != workloads.Never {
		return start
	}
	return t.loaded
}
