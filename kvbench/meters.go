package kvbench

import (
	"fmt"

	"kvbench/kvbench/result"
	"kvbench/tracing/host"
)

// readDevice reads the kernel's counters of the backing device. A failed
// reading leaves no witness rather than a wrong one.
func (t *trial) readDevice() host.BlockStat {
	if t.info.DeviceWitness.Device == "" {
		return host.BlockStat{}
	}
	s, err := t.device.ReadStat()
	if err != nil {
		t.info.DeviceWitness = result.Witness{Reason: fmt.Sprintf("reading the counters of %s "+
			"failed: %v", t.device.Name, err)}
	}
	return s
}

// measured is what process and device have counted since the window was opened.
func (t *trial) measured() {
	after := t.readDevice()
	if t.info.DeviceWitness.Device != "" {
		d := after.Sub(t.stat)
		t.info.DeviceWitness, t.info.DeviceBusy = counted(t.device.Name, d), d.IOTicks
	}
	t.info.Harness = used(t.usage, host.ReadUsage())
}

// counted is what the kernel counted between two readings.
func counted(device string, d host.BlockStat) result.Witness {
	return result.Witness{
		Device: device, ReadBytes: new(max(d.ReadBytes, 0)), WriteBytes: new(max(d.WriteBytes, 0)),
		ReadIOs: new(max(d.ReadIOs, 0)), WriteIOs: new(max(d.WriteIOs, 0)),
	}
}

// used tells what the process took between two readings.
func used(before, after host.Usage) result.Harness {
	cpu := max(after.CPU-before.CPU, 0) // where the system reckons it, it may go back a little
	h := result.Harness{
		CPUSeconds: cpu.Seconds(), CPUNS: int64(cpu),
		Mallocs:    int64(after.Mallocs - before.Mallocs),
		AllocBytes: int64(after.AllocBytes - before.AllocBytes),
		GCCount:    int64(after.NumGC - before.NumGC),
		GCPauseNS:  int64(after.GCPause - before.GCPause),
		VolCtxSw:   after.VolCtxSw - before.VolCtxSw,
		InvolCtxSw: after.InvolCtxSw - before.InvolCtxSw,
	}
	if after.PeakRSS > 0 {
		h.PeakRSSBytes = new(after.PeakRSS)
	}
	return h
}
