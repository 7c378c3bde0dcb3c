package kvbench

import (
	"kvbench/tiers"
)

func (b *builder) harness(r *Result) {
	i := b.info
	cpu := max(i.UsageAfter.CPU-i.UsageBefore.CPU, 0)
	h := Harness{
		CPUSeconds: cpu.Seconds(), CPUNS: int64(cpu),
		CPUNSPerByte: ratio(float64(cpu), float64(b.totalBytes(tiers.Read)+b.totalBytes(tiers.Write))),
		Mallocs:      counterDelta(i.UsageBefore.Mallocs, i.UsageAfter.Mallocs),
		AllocBytes:   counterDelta(i.UsageBefore.AllocBytes, i.UsageAfter.AllocBytes),
		GCCount:      counterDelta(uint64(i.UsageBefore.NumGC), uint64(i.UsageAfter.NumGC)),
		GCPauseNS:    int64(max(i.UsageAfter.GCPause-i.UsageBefore.GCPause, 0)),
		VolCtxSw:     max(i.UsageAfter.VolCtxSw-i.UsageBefore.VolCtxSw, 0),
		InvolCtxSw:   max(i.UsageAfter.InvolCtxSw-i.UsageBefore.InvolCtxSw, 0),
		WorkerIdleNS: int64(i.WorkerIdle), WorkerBusyNS: int64(i.WorkerBusy),
		BufferWaitNS: int64(b.t.buffers), HostNS: int64(b.t.stages[stageHost]),
	}
	if i.UsageAfter.PeakRSS > 0 {
		h.PeakRSSBytes = new(i.UsageAfter.PeakRSS)
	}
	if cpu == 0 {
		h.CPUNSPerByte = nil
	}
	cores := i.Limits.Cores
	if i.Simulation != nil {
		cpu, cores = 0, 0 // the CPU that a simulation takes says nothing about the run that it predicts
		h.CPUNSPerByte = nil
	}
	h.Verdict = judge(verdictInput{
		window: b.window, idle: i.WorkerIdle, busy: i.WorkerBusy, cpu: cpu, cores: cores,
		host: b.t.stages[stageHost], bufferWait: b.t.buffers,
	})
	if cpu == 0 {
		h.Verdict.CPUShare = nil
	}
	r.Harness = h
}

func counterDelta(before, after uint64) int64 {
	if after < before {
		return 0
	}
	return int64(after - before)
}

// servedFromCacheBelow is the share of the application's reads that the device must have seen.
const servedFromCacheBelow = 0.95

func (b *builder) witness(r *Result) {
	w := Witness{
		Device: b.info.Device, Reason: b.info.DeviceReason,
		AppReadBytes:  b.levelBytes(tiers.Storage, tiers.Read),
		AppWriteBytes: b.levelBytes(tiers.Storage, tiers.Write),
	}
	switch {
	case w.Device == "" && w.Reason == "":
		w.Reason = "no backing device was looked for"
	case w.Reason == "":
		before, after := b.info.DeviceBefore, b.info.DeviceAfter
		w.ReadBytes = new(max(after.ReadBytes-before.ReadBytes, 0))
		w.WriteBytes = new(max(after.WriteBytes-before.WriteBytes, 0))
		w.ReadIOs = new(max(after.ReadIOs-before.ReadIOs, 0))
		w.WriteIOs = new(max(after.WriteIOs-before.WriteIOs, 0))
		w.ReadRatio = ratio(float64(*w.ReadBytes), float64(w.AppReadBytes))
		w.WriteRatio = ratio(float64(*w.WriteBytes), float64(w.AppWriteBytes))
		w.BusyShare = ratio(float64(after.IOTicks-before.IOTicks), float64(b.window))
		if w.ReadRatio != nil {
			w.ServedFromCache = new(*w.ReadRatio < servedFromCacheBelow)
		}
	}
	r.DeviceWitness = w
}

// ceiling compares the storage tier's bytes with what plain I/O would have moved in the same mix and time.
func (b *builder) ceiling(r *Result) {
	c := b.info.Ceiling
	if c == nil {
		return
	}
	r.Ceiling = &Ceiling{Read: orZero(finite(c.Read)), Write: orZero(finite(c.Write))}
	read := float64(b.levelBytes(tiers.Storage, tiers.Read))
	write := float64(b.levelBytes(tiers.Storage, tiers.Write))
	var needed float64 // seconds that plain I/O needs for these bytes
	for _, part := range [...]struct{ bytes, rate float64 }{{read, r.Ceiling.Read}, {write, r.Ceiling.Write}} {
		if part.bytes == 0 {
			continue
		}
		if part.rate <= 0 {
			return // the ceiling of a direction in use is unknown
		}
		needed += part.bytes / part.rate
	}
	r.CeilingRatio = ratio(needed, b.window.Seconds())
}
