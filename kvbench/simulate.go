package kvbench

import (
	"context"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/sim"
	"kvbench/workloads/iotrace"
)

// SimConfig turns a run into a simulation in virtual time.
type SimConfig struct {
	// Trace receives every cache operation when it begins to move bytes, in the
	// order of the program, warm-up and population included; nil = no trace. The
	// caller closes it.
	Trace   *iotrace.Writer
	Deletes bool // with rows for entries that are deleted

	// Device is what the storage tier takes the time of; nil = all tiers are
	// infinitely fast.
	Device *tiers.DeviceModel
}

// boundless is the capacity of a storage tier of size 0: what fits into no
// machine, with room for sums.
const boundless = int64(1) << 60

// simulation is what a trial has in virtual time only.
type simulation struct {
	cfg    SimConfig
	trial  *trial
	began  time.Time // wall clock
	device *sim.Device
	over   bool // what begins from now on is cut before it moves a byte
}

// Simulate executes one trial as Run does, in virtual time: the same life, over
// tiers that hold no bytes. Operations take no time, or that of the device
// model; think and generation time pass virtually. It touches no storage and
// reads nothing of the machine, so its trace and its counts depend on the
// configuration alone.
//
// Of Config.Storage it reads the sizes, Chunk, Depth and MaxWriters; a storage
// size of 0 means unlimited. Settle, Precondition and Clock are ignored.
func Simulate(ctx context.Context, cfg Config, w Workload, sim SimConfig) (*result.Result, error) {
	if err := sim.Device.Validate(); err != nil {
		return nil, err
	}
	s := &simulation{cfg: sim, began: time.Now()}
	cfg.Clock = clock.NewVirtual()
	cfg.Settle = 0
	cfg.Storage.Simulated, cfg.Storage.Levels = true, s.levels(&cfg)
	return run(ctx, &cfg, w, s)
}

// levels makes the tiers, of which none holds bytes.
func (s *simulation) levels(cfg *Config) (levels []cache.Level) {
	add := func(l tiers.Kind, t tiers.Tier, capacity int64) {
		levels = append(levels, cache.Level{Kind: l, Tier: t, Capacity: capacity})
	}
	if n := cfg.Storage.GPUBytes; n > 0 {
		add(tiers.GPU, nil, n)
	}
	if n := cfg.Storage.CPUBytes; n > 0 {
		add(tiers.CPU, nil, n)
	}
	size := cfg.Storage.StorageBytes
	if size <= 0 {
		size = boundless
	}
	if s.cfg.Device == nil {
		add(tiers.Storage, nil, size)
		return levels
	}
	model := result.SimulatedDevice(*s.cfg.Device)
	s.device = sim.NewDevice(*s.cfg.Device, model.String(), cfg.Clock)
	add(tiers.Storage, s.device, size)
	return levels
}

// join makes the simulation a part of its trial, and returns who observes the cache.
func (s *simulation) join(t *trial) cache.Observer {
	s.trial = t
	t.rec.Timeless = s.cfg.Device == nil
	t.info.Simulation = &result.Simulation{}
	if d := s.cfg.Device; d != nil {
		t.info.Simulation.Device = new(result.SimulatedDevice(*d))
	}
	if s.cfg.Trace == nil {
		return t.obs
	}
	return &traceObserver{observer: t.obs, sim: s}
}

// preparing lets nothing take time until the function that it returns is called:
// what is in the cache before the load was there before time began.
func (s *simulation) preparing() (done func()) {
	if s.device == nil {
		return func() {}
	}
	s.device.Free = true
	return func() { s.device.Free = false }
}

// opened begins the device's account with the window.
func (s *simulation) opened() {
	if s.device != nil {
		s.device.Busy = 0
	}
}

// report says what kind of run it was and what it cost, at the window's end.
func (s *simulation) report() {
	s.over = true
	in := &s.trial.info
	if s.device != nil {
		in.MediumBusy = s.device.Busy
	}
	in.Simulation.WallNS = int64(time.Since(s.began))
	if s.cfg.Trace != nil {
		in.Simulation.TraceRows = s.cfg.Trace.Rows()
	}
}

// traceObserver writes the rows of the I/O trace.
type traceObserver struct {
	*observer
	sim *simulation
}

var _ cache.Observer = (*traceObserver)(nil)

var (
	rowOperations = [tiers.NumOps]iotrace.Operation{tiers.Read: iotrace.Read,
		tiers.Write: iotrace.Write}
	rowPhases = [tiers.NumPhases]string{tiers.Prefill: "Prefill", tiers.Decode: "Decode",
		tiers.Evict: "Evict"}
)

// Began implements cache.Observer.
func (o *traceObserver) Began(_ cache.Tag, ob tiers.Object, l tiers.Kind, op tiers.Op,
	ph tiers.Phase) {
	o.row(rowOperations[op], ob, l, ph)
}

// Deleted implements tiers.Observer.
func (o *traceObserver) Deleted(tag cache.Tag, ob tiers.Object, l tiers.Kind, took time.Duration) {
	o.observer.Deleted(tag, ob, l, took)
	if o.sim.cfg.Deletes {
		o.row(iotrace.Delete, ob, l, tiers.Evict)
	}
}

func (o *traceObserver) row(operation iotrace.Operation, ob tiers.Object, l tiers.Kind,
	ph tiers.Phase) {
	if o.sim.over {
		return
	}
	err := o.sim.cfg.Trace.Row(iotrace.Row{
		At: o.clock.Now(), Operation: operation, Bytes: ob.Size, Tier: int(l), Key: ob.Key,
		Phase: rowPhases[ph],
	})
	if err != nil {
		o.sim.trial.fail(err, result.EndedByError)
	}
}
