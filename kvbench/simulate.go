package kvbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvbench/tiers"
	"kvbench/tracing"
	"kvbench/workloads"
)

// SimConfig turns a run into a simulation in virtual time.
type SimConfig struct {
	// Trace receives every cache operation when it begins to move bytes, in the
	// order of the program, warm-up and population included; nil = no trace. The
	// caller closes it.
	Trace   *tracing.IOTraceWriter
	Deletes bool // with rows for entries that are deleted

	// Device is what the storage tier takes the time of; nil = all tiers are
	// infinitely fast.
	Device *DeviceModel
}

// boundless is the capacity of a storage tier of size 0: what fits into no
// machine, with room for sums.
const boundless = int64(1) << 60

// maxStill is how many requests may begin without time moving on. A load that
// neither thinks nor waits for storage would never reach its deadline.
const maxStill = 5000 << 12

// simulation is the part of a trial that exists in virtual time only.
type simulation struct {
	cfg    SimConfig
	trial  *trial
	time   *virtualTime
	cond   *virtualCond
	began  time.Time // wall clock
	told   time.Time // of the progress
	device *simDevice
	steps  int64
	still  int64 // requests since time moved last
	at     time.Duration
}

// Simulate executes one trial as Run does, in virtual time: the same users,
// queue, plans, cache and books, over tiers that hold no bytes. Operations take
// no time, or that of the device model; think and generation time pass
// virtually. It touches no storage and reads nothing of the machine, so its
// trace and its counts depend on the configuration alone.
//
// Of Config.Storage it reads the sizes, Chunk, Depth and MaxWriters; a storage
// size of 0 means unlimited. Settle, Precondition, Procs and Clock are ignored.
func Simulate(ctx context.Context, cfg Config, sim SimConfig) (*Result, error) {
	if err := errors.Join(cfg.Validate(), sim.Device.Validate()); err != nil {
		return nil, err
	}
	s := &simulation{cfg: sim, time: newVirtualTime(), began: time.Now()}
	s.told = s.began
	cfg.Settle, cfg.Procs = 0, 0
	t := &trial{cfg: &cfg, clock: s.time, info: cfg.Info, sim: s, ending: ending{failed: make(chan struct{})}}
	s.trial = t
	t.rec = NewRecorder(1)
	t.rec.timeless = sim.Device == nil
	t.obs = &observer{clock: t.clock, rec: t.rec, fail: t.fail}
	var err error
	if t.stack, err = s.openStack(cfg.Storage); err != nil {
		return nil, err
	}
	t.info.Simulation = &SimulationInfo{Device: sim.Device}
	return t.run(ctx, func() {
		src, err := cfg.Source()
		if err == nil {
			t.src = src
			t.scaler, err = t.newScaler()
		}
		if err == nil {
			err = s.populate(ctx)
		}
		if err != nil {
			t.failPreparing(ctx, err)
			return
		}
		s.load(ctx)
	})
}

// openStack makes the tiers, of which none holds bytes.
func (s *simulation) openStack(cfg StorageConfig) (*stack, error) {
	st := &stack{cfg: cfg, transfer: &tiers.Transfer{Chunk: cfg.Chunk, Depth: cfg.Depth, Now: s.time.Now}}
	add := func(l tiers.Level, t tiers.Tier, capacity int64) {
		st.levels = append(st.levels, tiers.LevelConfig{Level: l, Tier: t, Capacity: capacity})
	}
	if cfg.GPUBytes > 0 {
		add(tiers.GPU, tiers.NewInstantTier(), cfg.GPUBytes)
	}
	if cfg.CPUBytes > 0 {
		add(tiers.CPU, tiers.NewInstantTier(), cfg.CPUBytes)
	}
	size := cfg.StorageBytes
	if size <= 0 {
		size = boundless
	}
	if s.cfg.Device == nil {
		add(tiers.Storage, tiers.NewInstantTier(), size)
	} else {
		model := SimulatedDevice(*s.cfg.Device)
		s.device = newSimDevice(*s.cfg.Device, model.String(), s.time, int64(cfg.Chunk), cfg.Depth)
		add(tiers.Storage, s.device, size)
	}
	var obs tiers.Observer = s.trial.obs
	if s.cfg.Trace != nil {
		obs = &traceObserver{observer: s.trial.obs, sim: s}
	}
	var err error
	st.cache, err = tiers.NewCache(tiers.CacheConfig{
		Levels: st.levels, Transfer: st.transfer, MaxWriters: cfg.MaxWriters, Now: s.time.Now, Observer: obs, Block: s.time.block,
	})
	return st, err
}

// populate puts the entries that decode-only reads into the cache, before time
// begins.
func (s *simulation) populate(ctx context.Context) error {
	t, p := s.trial, s.trial.cfg.Population
	if p.Entries == 0 {
		return nil
	}
	f := filler{trial: t, size: t.cfg.Planner.Sizer.Bytes(p.Tokens), entries: int64(p.Entries), key: workloads.PopulationKey}
	if err := t.populationFits(f.size); err != nil {
		return err
	}
	if s.device != nil {
		s.device.free = true
		defer func() { s.device.free = false }()
	}
	err := f.write(ctx, 0)
	t.stack.cache.ResetCounters()
	return err
}

// load runs the workers through warm-up and window.
func (s *simulation) load(ctx context.Context) {
	t := s.trial
	opctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	t.stop = stop
	_ = ResetPeakRSS()
	d := newDispatcher(t.cfg, t.clock, t.src, t.stack.cache, t.rec)
	t.dispatch = d
	s.cond = &virtualCond{v: s.time, mu: &d.mu}
	d.cond, d.prod = s.cond, func() { s.time.at(d.origin+d.wake, s.alarm) }
	d.tell = func(r *workloads.Request, plan []workloads.Op) {
		s.dispatched(ctx)
		if t.cfg.OnDispatch != nil {
			t.cfg.OnDispatch(r, plan)
		}
	}
	full := make(<-chan struct{})
	if t.cfg.Requests > 0 {
		full = t.rec.LimitRequests(t.cfg.Requests)
	}
	if t.cfg.Warmup > 0 {
		s.time.at(d.origin+t.cfg.Warmup, s.open)
	} else {
		s.open()
	}
	d.hire(t.cfg.Workers)
	work := func(id int) {
		w := &worker{id: id, run: t}
		s.time.spawn(func() { w.loop(opctx) })
	}
	for id := range t.cfg.Workers {
		work(id)
	}
	s.watch()
	if t.scaler != nil {
		t.scaler.spawn = work
	}
	s.run(ctx, full)
	t.closeWindow(ctx)
	s.report()
}

// open opens the window, at whose end time stops.
func (s *simulation) open() {
	s.trial.openWindow()
	_, s.time.horizon = s.trial.rec.Window()
	if s.device != nil {
		s.device.busy = 0
	}
	if a := s.trial.scaler; a != nil {
		a.start()
		var next func()
		next = func() {
			a.sample()
			s.rewatch(a.interval(), next)
		}
		s.time.at(s.time.now+a.interval(), next)
	}
}

// alarm wakes a worker for an arrival.
func (s *simulation) alarm() {
	d := s.trial.dispatch
	if d.wake <= d.now() {
		d.wake = time.Duration(never)
		d.cond.Signal()
	}
}

// run is the loop: it returns when the window is over or something ended it.
func (s *simulation) run(ctx context.Context, full <-chan struct{}) {
	t := s.trial
	for {
		if s.time.idle() {
			s.cond.serve()
		}
		if !s.time.step() {
			t.end(EndedByDeadline)
			if s.time.now < s.time.horizon {
				t.fail(errors.New("the simulation stands still: every worker waits and nothing will happen"), EndedByError)
			}
			return
		}
		switch {
		case closed(full):
			t.end(EndedByCount)
			return
		case closed(t.dispatch.drained):
			t.end(t.cfg.EndedBy)
			return
		case closed(t.ending.failed):
			return
		}
		if t.scaler != nil && closed(t.scaler.over()) {
			t.end(EndedByCapacity)
			return
		}
		if s.steps++; s.steps&0xfff == 0 {
			if ctx.Err() != nil {
				t.fail(context.Cause(ctx), EndedBySignal)
				return
			}
			s.progress()
		}
	}
}

// closed says whether a channel that carries nothing is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// dispatched counts a request and ends a load under which time stands still. It
// runs under the dispatcher's lock.
func (s *simulation) dispatched(ctx context.Context) {
	if now := s.time.now; now != s.at {
		s.at, s.still = now, 0
	}
	if s.still++; s.still&0xfff != 0 {
		return
	}
	t := s.trial
	if ctx.Err() != nil {
		t.fail(context.Cause(ctx), EndedBySignal)
		t.dispatch.closed = true
	}
	if s.still >= maxStill {
		t.fail(fmt.Errorf("%d requests began at one moment of virtual time: a load that neither thinks nor waits for storage has no end here; "+
			"give think times, -trace-speedup, -max-requests or -simulate-device", s.still), EndedByError)
		t.dispatch.closed = true
	}
}

// watch reads the gauges at the intervals of the timeline.
func (s *simulation) watch() {
	interval := time.Second
	if w := s.trial.cfg.Window; w > 0 {
		interval = min(interval, timelineInterval(w))
	}
	var next func()
	next = func() {
		s.trial.gauge(s.time.now)
		s.rewatch(interval, next)
	}
	s.rewatch(interval, next)
}

// rewatch asks for the next reading unless nothing else is going to happen:
// watching alone must not keep a load alive.
func (s *simulation) rewatch(interval time.Duration, next func()) {
	if len(s.time.events) == 0 && s.time.idle() && len(s.time.blocked) == 0 && !s.cond.signaled {
		return
	}
	s.time.at(s.time.now+interval, next)
}

// progress shows the live line about once a second of real time.
func (s *simulation) progress() {
	t := s.trial
	if t.cfg.Progress == nil || time.Since(s.told) < time.Second {
		return
	}
	s.told = time.Now()
	g, gauges := t.gauge(s.time.now)
	snap := t.snapshot(s.time.now, g, gauges)
	snap.Stage = "simulating"
	t.cfg.Progress(snap)
}

// report says what kind of run it was and what it cost.
func (s *simulation) report() {
	in := s.trial.info.Simulation
	if s.device != nil {
		in.Busy = s.device.busy
	}
	in.Wall = time.Since(s.began)
	if s.cfg.Trace != nil {
		in.Rows = s.cfg.Trace.Rows()
	}
}
