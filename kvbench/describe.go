package kvbench

import (
	"time"

	"kvbench/kvbench/environment"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tracing/host"
)

// describe fills what is known of the run before it starts, beside what was noted when the storage
// side was opened.
func (t *trial) describe() {
	in, cfg := &t.info, &t.cfg.Storage
	in.Limits = result.Limits(host.ReadLimits())
	if t.phase.Window > 0 {
		in.NominalWindowNS = new(int64(t.phase.Window))
	}
	in.WarmupNS, in.SettleNS = int64(t.phase.Warmup), int64(t.cfg.Settle)
	in.IO.ChunkBytes, in.IO.Depth, in.IO.MaxConcurrentAllocs = cfg.Chunk, cfg.Depth, cfg.MaxWriters
	in.IO.WriteDevice = result.WriteDeviceTransfer
	if cfg.FlushOnly {
		in.IO.WriteDevice = result.WriteDeviceFlush
	}
	// The zero device would mean every device of the machine.
	t.device = host.Device{Reason: "the run has no storage tier on a filesystem"}
	if t.sim != nil {
		in.IO.Mode = result.IOSimulated
		t.device.Reason = "a simulation: nothing was written or read"
	} else if dir := in.IO.CacheDir; dir != "" {
		in.Environment = environment.Read(dir)
		in.Environment.Version = version()
		var err error
		if t.device, err = host.BackingDevice(dir); err != nil {
			t.device.Reason = err.Error()
		}
	}
	if t.device.Reason != "" {
		in.DeviceWitness.Reason = t.device.Reason
		return
	}
	in.DeviceWitness = counted(t.device.Name, host.BlockStat{})
	if t.device.Note != "" {
		t.warn(t.device.Note)
	}
}

// tierInfo notes the tiers' state at the end of the window.
func (t *trial) tierInfo() {
	for i, g := range t.Cache.Gauges(nil) {
		level := t.Levels[i]
		info := result.Tier{
			Level: g.Level.String(), Description: level.Description(), Entries: g.Entries,
			UsedBytes: g.Bytes, PeakBytes: g.Peak,
		}
		if g.Capacity > 0 && g.Capacity != boundless {
			info.CapacityBytes = new(g.Capacity)
		}
		if f, ok := level.Tier.(interface{ Footprint() (held, waste int64) }); ok {
			_, info.WasteBytes = f.Footprint()
		}
		t.info.Tiers = append(t.info.Tiers, info)
	}
}

// conclude turns what is known into the result. Workers that still drain after
// a signal cannot change it: what completes now lies outside the window.
func (t *trial) conclude(by string, failure error) *result.Result {
	in := &t.info
	in.EndedBy, in.Status = by, result.StatusComplete
	if failure != nil {
		in.Error, in.Status = failure.Error(), result.StatusFailed
		if by == result.EndedBySignal {
			in.Status = result.StatusIncomplete
		}
	}
	t.workload.Report(in)
	t.readTrace()
	if t.sim != nil {
		in.Simulation = t.sim.about()
	}
	in.ElapsedNS = int64(t.Clock.Now() - t.begun)
	return record.Build(t.info, t.Rec)
}

// about is what a result says of a simulation.
func (s *simulation) about() *result.Simulation {
	r := &result.Simulation{WallNS: int64(time.Since(s.began))}
	if s.Device != nil {
		r.Device = new(result.SimulatedDevice(*s.Device))
	}
	if s.Trace != nil {
		r.TraceRows = s.Trace.Rows()
	}
	return r
}
