package kvbench

import (
	"kvbench/kvbench/environment"
	"kvbench/kvbench/units"
	"kvbench/tiers/spread"
	"kvbench/tracing/host"
)

// behind returns the device behind the storage tier's directories, or their combination. It notes
// facts about a single directory with that directory.
func (t *trial) behind() (all host.Device, err error) {
	// If one directory has no device (tmpfs, a file server), all lack device counters: the sum
	// would be too small.
	var devices []host.Device
	on := map[string]int{} // how many directories
	for _, dir := range t.places {
		d, err := host.BackingDevice(dir)
		if err != nil {
			return d, err
		}
		devices = append(devices, d)
		on[d.Title()]++
	}
	for i := range t.roots {
		d, to := devices[i], &t.info.IO.Roots[i]
		to.Filesystem, to.Device, to.DeviceReason = d.Filesystem, d.Title(), d.Reason
		to.Mount, to.BlockDevice = environment.Filesystem(d), environment.Device(d)
		if d.Reason == "" && on[d.Title()] > 1 {
			to.DeviceReason = "another directory of the run lies on this device"
		}
		t.roots[i].device = d
	}
	return host.Together(devices...), nil
}

// openedRoots reads the counters of each directory's device when the window opens.
func (t *trial) openedRoots() {
	for i := range t.roots {
		t.roots[i].stat = t.readRoot(i)
	}
}

// closeRoots notes the counters since then.
func (t *trial) closeRoots() {
	// Until now, like the counters of all devices: the window's end or soon after.
	start, _ := t.Rec.Window()
	window := t.Clock.Now() - start
	for i := range t.roots {
		d := t.readRoot(i).Sub(t.roots[i].stat)
		if to := &t.info.IO.Roots[i]; to.DeviceReason == "" {
			to.DeviceReadBytes, to.DeviceWriteBytes = new(d.ReadBytes), new(d.WriteBytes)
			to.DeviceBusyShare = units.Ratio(d.IOTicks, window)
		}
	}
}

// readRoot reads the counters of a directory's device if they are the directory's alone.
func (t *trial) readRoot(i int) (s host.BlockStat) {
	if to := &t.info.IO.Roots[i]; to.DeviceReason == "" {
		var err error
		if s, err = t.roots[i].device.ReadStat(); err != nil {
			to.DeviceReason = err.Error()
		}
	}
	return s
}

// rootInfo notes the entries and bytes of each directory at the end of the window.
func (t *trial) rootInfo() {
	of, ok := t.files.(*spread.Tier)
	if !ok {
		return
	}
	for i, u := range of.Uses() {
		to := &t.info.IO.Roots[i]
		to.Entries, to.UsedBytes, to.Elsewhere = u.Entries, u.Bytes, u.Elsewhere
	}
}
