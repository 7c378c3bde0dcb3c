package record

import (
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
)

func (b *builder) harness(r *result.Result) {
	h := &r.Harness
	h.BufferWaitNS, h.HostNS = b.sum(sumBuffersNS), b.sum(stageSum(stageHost))
	cpu, cores := time.Duration(h.CPUNS), r.Limits.Cores
	if r.Simulation != nil {
		cpu, cores = 0, 0 // the CPU that a simulation takes says nothing about the run that it predicts
	}
	if cpu > 0 {
		h.CPUNSPerByte = units.Ratio(cpu, b.totalBytes(tiers.Read)+b.totalBytes(tiers.Write))
	}
	h.Verdict = judge(verdictInput{
		window: b.window, idle: time.Duration(h.WorkerIdleNS), busy: time.Duration(h.WorkerBusyNS), cpu: cpu, cores: cores,
		host: time.Duration(h.HostNS), bufferWait: time.Duration(h.BufferWaitNS),
	})
	if cpu == 0 {
		h.Verdict.CPUShare = nil
	}
}

// servedFromCacheBelow is the share of the application's reads that the device must have seen.
const servedFromCacheBelow = 0.95

func (b *builder) witness(r *result.Result) {
	w := &r.DeviceWitness
	w.AppReadBytes, w.AppWriteBytes = b.levelBytes(tiers.Storage, tiers.Read), b.levelBytes(tiers.Storage, tiers.Write)
	switch {
	case w.Device == "" && w.Reason == "":
		w.Reason = "no backing device was looked for"
	case w.Reason == "" && w.ReadBytes != nil:
		w.ReadRatio = units.Ratio(*w.ReadBytes, w.AppReadBytes)
		w.WriteRatio = units.Ratio(*w.WriteBytes, w.AppWriteBytes)
		w.BusyShare = units.Ratio(b.info.DeviceBusy, b.window)
		if w.ReadRatio != nil {
			w.ServedFromCache = new(*w.ReadRatio < servedFromCacheBelow)
		}
	}
}

// ceiling compares the storage tier's bytes with what plain I/O would have moved in the same mix and time.
func (b *builder) ceiling(r *result.Result) {
	c := r.Ceiling
	if c == nil {
		return
	}
	r.Ceiling = &result.Ceiling{Read: units.OrZero(units.Finite(c.Read)), Write: units.OrZero(units.Finite(c.Write))}
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
	r.CeilingRatio = units.Ratio(needed, b.window.Seconds())
}
