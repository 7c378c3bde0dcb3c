package kvbench

import (
	"fmt"
	"time"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers/cache"
	"kvbench/tracing/host"
)

// describe fills what is known of the run before it starts.
func (t *trial) describe() {
	in, st := &t.info, t.stack
	in.Limits = result.Limits(host.ReadLimits())
	in.Nonce = fmt.Sprintf("%x", t.cfg.Storage.Nonce)
	if t.phase.Window > 0 {
		in.NominalWindowNS = new(int64(t.phase.Window))
	}
	in.WarmupNS, in.SettleNS = int64(t.phase.Warmup), int64(t.cfg.Settle)
	in.IO.ChunkBytes, in.IO.Depth = t.cfg.Storage.Chunk, t.cfg.Storage.Depth
	in.IO.MaxConcurrentAllocs = t.cfg.Storage.MaxWriters
	in.IO.WriteDevice = result.WriteDeviceTransfer
	if t.cfg.Storage.FlushOnly {
		in.IO.WriteDevice = result.WriteDeviceFlush
	}
	if t.sim != nil {
		in.IO.Mode, in.DeviceWitness.Reason = result.IOSimulated,
			"a simulation: nothing was written or read"
		return
	}
	if st.pool != nil {
		in.IO.Pool = result.Pool{
			Buffers: st.pool.Buffers(), BufferBytes: st.pool.Size(), HugePages: st.pool.HugePages(),
			Covers: st.covers,
		}
	}
	in.Warnings = append(in.Warnings, st.warnings...)
	if st.dir == nil {
		in.DeviceWitness.Reason = "no storage tier on a filesystem"
		return
	}
	in.IO.CacheDir = st.dir.Path()
	in.IO.Mode = "buffered" // what the filesystem granted, not what was asked for
	if st.file.Direct() {
		in.IO.Mode = "direct"
	}
	in.Environment = environment(st.dir.Path())
	dev, err := host.BackingDevice(st.dir.Path())
	t.device = dev
	switch {
	case err != nil:
		in.DeviceWitness.Reason = err.Error()
	case dev.Reason != "":
		in.DeviceWitness.Reason = dev.Reason
	default:
		in.DeviceWitness = counted(dev.Name, host.BlockStat{})
		if dev.Note != "" {
			in.Warnings = append(in.Warnings, dev.Note)
		}
	}
	if r := st.dir.Reclaimed(); r.Files > 0 {
		in.Warnings = append(in.Warnings, fmt.Sprintf("reclaimed %d files (%.2f GiB) of an "+
			"earlier run that was killed or kept its files", r.Files, float64(r.Bytes)/(1<<30)))
	}
}

// tierInfo notes the tiers' state at the end of the window.
func (t *trial) tierInfo() {
	t.info.Tiers = t.info.Tiers[:0]
	for i, g := range t.stack.cache.Gauges(nil) {
		level := t.stack.levels[i]
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
	in.ElapsedNS = int64(t.clock.Now() - t.begun)
	return record.Build(t.info, t.rec)
}

// Snapshot is what the live line shows.
type Snapshot struct {
	// "preconditioning", "filling", "resting", "warming up", "running", "removing its files"
	Stage    string
	Elapsed  time.Duration // in this stage
	Total    time.Duration // of this stage, 0 = unknown
	Live     record.Live
	Queued   int64
	InFlight int64
	Tiers    []cache.Gauge
	Free     int64 // bytes free on the storage tier's filesystem, -1 = unknown
	Done     int64 // bytes so far and in all, of preconditioning and filling
	Of       int64
}
