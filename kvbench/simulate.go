package kvbench

import (
	"cmp"
	"context"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/sim"
	"kvbench/tiers/transfer"
	"kvbench/workloads/iotrace"
)

// SimConfig turns a run into a simulation in virtual time.
type SimConfig struct {
	// Trace gets a row for every cache operation at its start, also for population and warm-up. nil = no
	// trace. The caller closes it.
	Trace   *iotrace.Writer
	Deletes bool // Trace also gets a row for each deletion

	// Device is the model that gives the times of the storage tier. With a Device the gpu tier takes the
	// time of its link, and the cpu tier takes no time. nil = no tier takes time.
	Device *tiers.DeviceModel
}

// Simulate executes one trial in virtual time, with the stages of Run and tiers that hold no bytes.
// Operations take no time, or the time of the device model. Think and generation times pass in virtual
// time. Simulate uses no storage and reads nothing of the machine. So its trace and its counts depend
// only on the configuration.
//
// Of Config.Storage it uses the sizes, GPUBandwidth, Chunk, Depth and MaxWriters. A storage size of 0
// means unlimited. It ignores Settle, Precondition and Clock.
func Simulate(ctx context.Context, cfg Config, w Workload, sc SimConfig) (*result.Result, error) {
	s := &simulation{SimConfig: sc, began: time.Now(), device: new(sim.Device)}
	cfg.Clock, cfg.Settle = clock.NewVirtual(), 0
	var gpu, storage tiers.Tier // nil: takes no time; the trial has the settings
	if sc.Device != nil && cfg.Storage.GPUBytes > 0 {
		s.gpu = sim.NewLink(cfg.Storage.GPUBandwidth, cfg.Clock)
		gpu = transfer.New(s.gpu, nil)
	}
	if sc.Device != nil {
		model := result.SimulatedDevice(*sc.Device)
		s.device = sim.NewDevice(*sc.Device, model.String(), cfg.Clock)
		storage = transfer.New(s.device, nil)
	}
	st := &cfg.Storage
	st.Simulated, st.Levels = true, nil
	for _, l := range []cache.Level{
		{Kind: tiers.GPU, Capacity: st.GPUBytes, Tier: gpu},
		{Kind: tiers.CPU, Capacity: st.CPUBytes},
		{Kind: tiers.Storage, Capacity: cmp.Or(st.StorageBytes, boundless), Tier: storage},
	} {
		if l.Capacity > 0 {
			st.Levels = append(st.Levels, l)
		}
	}
	return run(ctx, &cfg, w, s)
}
