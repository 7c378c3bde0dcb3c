package kvbench

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/ioengine"
	"kvbench/tracing/host"
	"kvbench/workloads"
)

// describe writes into the result what is known before the workload starts: limits, times, I/O settings,
// environment and device. openStorage has already written the rest.
func (t *trial) describe() {
	in, cfg := &t.info, &t.cfg.Storage
	in.Limits = host.ReadLimits()
	if t.phase.Window > 0 {
		in.NominalWindowNS = new(int64(t.phase.Window))
	}
	in.WarmupNS, in.SettleNS = int64(t.phase.Warmup), int64(t.cfg.Settle)
	in.IO.ChunkBytes, in.IO.Depth, in.IO.MaxConcurrentAllocs = cfg.Chunk, cfg.Depth, cfg.MaxWriters
	in.IO.WriteDevice = result.WriteDeviceTransfer
	if cfg.FlushOnly {
		in.IO.WriteDevice = result.WriteDeviceFlush
	}
	// The zero host.Device means all devices of the machine. With a Reason it means none.
	t.device = host.Device{Reason: "the run has no storage tier on a filesystem"}
	if t.sim != nil {
		in.IO.Mode = result.IOSimulated
		t.device.Reason = "a simulation: nothing was written or read"
	} else if cfg.Levels == nil {
		dir := ""
		if len(t.dirs) > 0 {
			dir = t.dirs[0].path
		}
		in.Environment = result.ReadEnvironment(dir)
		in.Environment.Version = result.Version()
		var err error
		if cfg.StorageBytes == 0 {
			in.IO.Mode, in.IO.WriteDevice = result.IOMemory, ""
		} else if dir == "" {
			t.device.Reason, in.Environment.DeviceReason = noDevice, noDevice
		} else if t.device, err = t.behind(); err != nil {
			t.device.Reason = err.Error()
		}
	}
	if t.device.Reason != "" {
		in.DeviceCounters.Reason = t.device.Reason
		return
	}
	in.DeviceCounters = counted(t.device.Title(), host.BlockStat{})
	if t.device.Note != "" {
		t.warn(t.device.Note)
	}
}

// boundless is the capacity of a simulated storage tier of size 0, which means unlimited. No machine
// has as much storage, and sums of a few such capacities do not overflow.
const boundless = int64(1) << 60

// tierInfo writes into the result what the tiers hold at the end of the window.
func (t *trial) tierInfo() {
	for i, g := range t.Cache.Gauges(nil) {
		level := t.Levels[i]
		info := result.Tier{
			Level: g.Level.String(), Description: level.Description(), Entries: g.Entries,
			UsedBytes: g.Bytes, LeavingBytes: g.Leaving, ClaimedBytes: g.Claimed,
			PeakBytes: g.Peak,
		}
		if g.Capacity > 0 && g.Capacity != boundless {
			info.CapacityBytes = new(g.Capacity)
		}
		if level.Kind == tiers.Storage {
			for _, f := range t.files {
				_, waste := f.Footprint()
				info.WasteBytes += waste
			}
		}
		t.info.Tiers = append(t.info.Tiers, info)
	}
	t.rootInfo()
	if t.counted != nil && t.info.Division != result.DivisionClosed {
		t.info.Policy = t.policy()
	}
}

// policy describes the placement policy, and counts the entries that it copied, promoted and dropped.
func (t *trial) policy() *result.Policy {
	cfg, m := &t.cfg.Storage.Policy, t.Cache.Moves()
	p := &result.Policy{Tier: cache.Placements[cfg.Place], Promote: "never",
		Evict: cmp.Or(cfg.Order, "lru"), AdmitAfter: cfg.After, BehindBytes: cfg.Behind,
		Copied: result.EntryCount(m.Copied), Promoted: result.EntryCount(m.Promoted),
		Dropped: result.EntryCount(m.Dropped), Refused: result.EntryCount(m.Refused),
		Unwritten: result.EntryCount(m.Unwritten), MostBehind: m.MostBehind}
	if cfg.Promote == cache.OnHit {
		p.Promote = "on-hit"
	}
	written := t.Rec.Counters().Bytes[tiers.Storage][tiers.Write]
	start, end := t.Rec.Window()
	if last := t.Levels[len(t.Levels)-1]; last.Kind == tiers.Storage && end > start &&
		last.Capacity > 0 && last.Capacity != boundless {
		perDay := float64(written) / (end - start).Seconds() * (24 * time.Hour).Seconds()
		p.DriveWritesPerDay = new(perDay / float64(last.Capacity))
	}
	return p
}

// conclude makes the result of the trial. After a signal some workers may still have operations in flight.
// They cannot change the result, because these operations complete outside the window.
func (t *trial) conclude(by string, failure error) *result.Result {
	in := &t.info
	in.EndedBy, in.Status = by, result.StatusComplete
	if failure != nil {
		in.Error, in.Status = failure.Error(), result.StatusFailed
		if by == result.EndedBySignal {
			in.Status = result.StatusIncomplete
		}
	}
	if t.prepared.Load() { // else Prepare may hang in a system call, and its data must not be read
		t.workload.Report(in)
	}
	if t.bucket != nil {
		t.warn(t.bucket.Warnings()...)
		times := t.objects.Fill(&in.Result, t.bucket)
		maps.Copy(times, in.Times) // in.Times has the times that the workload reported
		in.Times = times
	}
	in.DrainNS = t.drained.Load()
	if start, end := t.Rec.Window(); in.DrainNS == 0 && start != workloads.Never { // workers still run
		in.DrainNS = int64(t.Clock.Now() - end)
	}
	t.pauseInfo()
	t.stalls()
	t.readTrace()
	if t.sim != nil {
		in.Simulation = t.sim.about()
	}
	in.ElapsedNS = int64(t.Clock.Now() - t.begun)
	return record.Build(t.info, t.Rec)
}

// about returns the section "simulation" of the result.
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

// DeviceStat reads the kernel's counters of the device behind the storage tier. It returns nil if there are
// none, or if the read fails. DeviceCounters in the result has the reason why there are none.
func (e *Env) DeviceStat() host.Reading {
	s, err := e.trial.device.ReadStat()
	if err != nil || e.trial.info.DeviceCounters.Device == "" {
		return nil
	}
	return s
}

// readDevice reads the kernel's counters of the backing device. If that fails once, the result has the reason
// and no counters.
func (t *trial) readDevice() host.Reading {
	if t.info.DeviceCounters.Device == "" {
		return nil
	}
	s, err := t.device.ReadStat()
	if err != nil {
		t.info.DeviceCounters = result.DeviceCounters{Reason: fmt.Sprintf("reading the counters of %s "+
			"failed: %v", t.device.Title(), err)}
	}
	return s
}

// readMeters reads the counters of process and kernel.
func (t *trial) readMeters() reading {
	return reading{readAt: t.Clock.Now(), usage: t.cfg.Usage(), stat: t.readDevice(), rootStats: t.readRoots()}
}

// Suspend suspends the measurement of CPU time and device counters until Resume. All other counters (allocations,
// garbage collection, context switches, waits, cards) go on, and include the suspended span.
func (e *Env) Suspend() {
	e.trial.metering.Lock()
	defer e.trial.metering.Unlock()
	e.trial.suspended = new(e.trial.readMeters())
}

// Resume continues a suspended measurement.
func (e *Env) Resume() {
	e.trial.metering.Lock()
	defer e.trial.metering.Unlock()
	e.trial.resume()
}

// resume leaves the suspended span out of CPU time and device counters. Callers hold metering.
func (t *trial) resume() {
	from := t.suspended
	if from == nil {
		return
	}
	t.suspended = nil
	to := t.readMeters()
	t.readAt += to.readAt - from.readAt
	t.usage.CPU += to.usage.CPU - from.usage.CPU
	t.stat.Advance(from.stat, to.stat)
	for i, root := range t.rootStats {
		root.Advance(from.rootStats[i], to.rootStats[i])
	}
}

// measured writes into the result how far the counters of process and device have grown since the window
// opened. CPU time and device counters leave out suspended spans.
func (t *trial) measured() {
	t.metering.Lock()
	defer t.metering.Unlock()
	t.resume()
	after := t.readDevice()
	if t.info.DeviceCounters.Device != "" {
		d := after.Sub(t.stat)
		t.info.DeviceCounters = counted(t.device.Title(), d)
		t.info.DeviceCounters.BusyShare = t.busyShare(d)
	}
	t.closeRoots()
	t.closeCardCounters()
	before, now := t.usage, t.cfg.Usage()
	cpu := max(now.CPU-before.CPU, 0) // some systems estimate the CPU time, which may then decrease
	t.info.Harness = result.Harness{
		CPUNS:       int64(cpu),
		Mallocs:     int64(now.Mallocs - before.Mallocs),
		AllocBytes:  int64(now.AllocBytes - before.AllocBytes),
		GCCount:     int64(now.NumGC - before.NumGC),
		GCPauseNS:   int64(now.GCPause - before.GCPause),
		VolCtxSw:    now.VolCtxSw - before.VolCtxSw,
		InvolCtxSw:  now.InvolCtxSw - before.InvolCtxSw,
		LockWaitNS:  int64(max(now.LockWait-before.LockWait, 0)),
		SchedWaitNS: int64(max(now.SchedWait-before.SchedWait, 0)),
		GCAssistNS:  int64(max(now.GCAssist-before.GCAssist, 0)),
		Unloaded:    t.unloaded,
	}
	if now.PeakRSS > 0 {
		t.info.Harness.PeakRSSBytes = new(now.PeakRSS)
	}
}

// busyShare returns the share of the measured time in which a device had requests in flight. The measured time begins with
// the first reading, shortly before the window, and leaves out suspended spans (Suspend). The kernel counts in ticks of up
// to 4 ms, so its busy time may exceed the measured time.
func (t *trial) busyShare(d host.BlockStat) *float64 {
	passed := t.Clock.Now() - t.readAt
	return units.Ratio(min(d.IOTicks, passed), passed)
}

// counted returns the difference d of two readings of a device's counters as a section of the result.
func counted(device string, d host.BlockStat) result.DeviceCounters {
	return result.DeviceCounters{
		Device: device, ReadBytes: new(max(d.ReadBytes, 0)), WriteBytes: new(max(d.WriteBytes, 0)),
		ReadIOs: new(max(d.ReadIOs, 0)), WriteIOs: new(max(d.WriteIOs, 0)),
		DiscardIOs: new(max(d.DiscardIOs, 0)), DiscardBytes: new(max(d.DiscardBytes, 0)),
		DiscardNS: new(max(int64(d.DiscardTicks), 0)),
		FlushIOs:  new(max(d.FlushIOs, 0)), FlushNS: new(max(int64(d.FlushTicks), 0)),
		QueueNS: new(max(int64(d.TimeInQueue), 0)),
	}
}

// behind returns the device behind the storage tier's directories, or several devices as one. It writes the
// filesystem and the device of each directory into that directory's part of the result.
func (t *trial) behind() (all host.Device, err error) {
	// If one directory has no device (tmpfs, a file server), the result has no device counters. The sum over
	// the other directories would be too small.
	var devices []host.Device
	on := map[string]int{} // how many directories each device has
	for _, dir := range t.dirs {
		if dir.device, err = host.BackingDevice(dir.path); err != nil {
			return dir.device, err
		}
		devices = append(devices, dir.device)
		on[dir.device.Title()]++
	}
	for i := range t.info.IO.Roots {
		d, to := devices[i], &t.info.IO.Roots[i]
		to.Filesystem, to.Device, to.DeviceReason = d.Filesystem, d.Title(), d.Reason
		to.Mount, to.BlockDevice = result.FilesystemOf(d), result.DeviceOf(d)
		if d.Reason == "" && on[d.Title()] > 1 {
			to.DeviceReason = "another directory of the run lies on this device"
		}
	}
	return host.Together(devices...), nil
}

// readRoots reads the counters of the device of each of several directories. It reads none if the
// directory has no device, or if another directory of the run is on the same device.
func (t *trial) readRoots() []host.Reading {
	all := make([]host.Reading, len(t.info.IO.Roots))
	for i := range all {
		if to := &t.info.IO.Roots[i]; to.DeviceReason == "" {
			var err error
			if all[i], err = t.dirs[i].device.ReadStat(); err != nil {
				to.DeviceReason = err.Error()
			}
		}
	}
	return all
}

// closeRoots writes into the result how far the counters of each directory's device have grown since the
// window opened.
func (t *trial) closeRoots() {
	for i, after := range t.readRoots() {
		d := after.Sub(t.rootStats[i])
		if to := &t.info.IO.Roots[i]; to.DeviceReason == "" {
			to.DeviceReadBytes, to.DeviceWriteBytes = new(d.ReadBytes), new(d.WriteBytes)
			to.DeviceBusyShare = t.busyShare(d)
		}
	}
}

// rootInfo writes into the result which entries and bytes each directory holds at the end of the window.
func (t *trial) rootInfo() {
	for rank, files := range t.spreads {
		for i, u := range files.Uses() {
			to := &t.info.IO.Roots[i]
			to.UsedBytes += u.Bytes
			if rank == 0 { // each rank has a part of each object
				to.Entries, to.Elsewhere = u.Entries, u.Elsewhere
			}
		}
	}
}

// stallWarning is the shortest stall for which the result has a warning. A device with a long queue
// rarely needs more than some seconds. The result's Stalls also has shorter stalls.
const stallWarning = 10 * time.Second

// stalls writes into the result which calls the storage completed late or not at all.
func (t *trial) stalls() {
	if t.engine == nil {
		return
	}
	all := t.engine.Stalls()
	if all.Count == 0 {
		return
	}
	in := &result.Stalls{AfterNS: int64(ioengine.StallAfter), Count: all.Count,
		LongestNS: int64(all.Longest[0].For)}
	for _, s := range all.Longest {
		in.Longest = append(in.Longest, result.Stall{Operation: s.What, Path: s.Path, Offset: s.Off,
			Bytes: int64(s.N), BegunNS: int64(s.Begun - t.begun), LengthNS: int64(s.For),
			Answered: s.Answered})
	}
	t.info.Stalls = in
	if longest := all.Longest[0]; longest.For > stallWarning {
		t.warn(fmt.Sprintf("the device had a request for %s without an answer: %s",
			longest.For.Round(time.Second), longest))
	}
}
