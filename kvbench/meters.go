package kvbench

import (
	"encoding/json"
	"fmt"

	"kvbench/kvbench/result"
	"kvbench/tracing/host"
)

// meters are what the process and the kernel had counted when the window opened.
type meters struct {
	usage  host.Usage
	device host.BlockStat
}

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

// measured is what they count at the end of the window.
func (t *trial) measured() {
	after := t.readDevice()
	if t.info.DeviceWitness.Device != "" {
		d := after.Sub(t.meters.device)
		t.info.DeviceWitness, t.info.DeviceBusy = counted(t.info.DeviceWitness.Device, d), d.IOTicks
	}
	t.info.Harness = used(t.meters.usage, host.ReadUsage())
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
	cpu := max(after.CPU-before.CPU, 0)
	h := result.Harness{
		CPUSeconds: cpu.Seconds(), CPUNS: int64(cpu),
		Mallocs:    counterDelta(before.Mallocs, after.Mallocs),
		AllocBytes: counterDelta(before.AllocBytes, after.AllocBytes),
		GCCount:    counterDelta(before.NumGC, after.NumGC),
		GCPauseNS:  int64(max(after.GCPause-before.GCPause, 0)),
		VolCtxSw:   max(after.VolCtxSw-before.VolCtxSw, 0),
		InvolCtxSw: max(after.InvolCtxSw-before.InvolCtxSw, 0),
	}
	if after.PeakRSS > 0 {
		h.PeakRSSBytes = new(after.PeakRSS)
	}
	return h
}

func counterDelta(before, after uint64) int64 {
	if after < before {
		return 0
	}
	return int64(after - before)
}

// environment describes the machine and the directory in the result's own types, which have the
// same keys.
func environment(dir string) (e result.Environment) {
	same(&e, host.ReadEnvironment(dir))
	e.Version = version()
	return e
}

// same fills to with from, which has the same JSON.
func same(to, from any) {
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		// they are types of this module, and a test compares them
		panic(fmt.Sprintf("%T as %T: %v", from, to, err))
	}
}
