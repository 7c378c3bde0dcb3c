package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Device is the block device behind a directory, or the reason why there is none. It is plain data: it holds no
// descriptor, may be copied, and its methods may be called from any goroutine.
type Device struct {
	Name         string // kernel name of the whole device (nvme0n1, sda, dm-0, loop3); empty when there is none
	SysPath      string // its directory in sysfs, without symlinks
	Major, Minor uint32 // device number of the whole device
	Partition    string // kernel name of the partition that holds the filesystem, empty when it has the whole device

	Filesystem string // type as the kernel names it: ext4, xfs, tmpfs, nfs4, overlay
	Mount      Mount  // the mount that holds the directory; zero where it could not be found

	// Members are the devices directly below a stacked one (dm, md: the kernel's slaves; an NVMe multipath head: its
	// paths). Their statistics show the same bytes once more and must not be added to the device's.
	Members     []string
	BackingFile string // the file below a loop device

	// Note says in one sentence what a reader should know about the device's counters, empty for a plain disk.
	Note string
	// Reason says in one sentence why the kernel cannot be a witness for this directory. Empty means ReadStat works.
	// Name may be known all the same (a device whose statistics are switched off).
	Reason string

	statPaths []string // what ReadStat sums; empty: SysPath/stat
}

// ErrNoWitness is wrapped by ReadStat's error for a device that has no statistics; the error's text is Device.Reason.
var ErrNoWitness = errors.New("no block device statistics")

// BackingDevice finds the block device behind the directory or file at path, which must exist. A directory without
// one is not an error: Device.Reason tells why. An error means that the question could not be asked.
func BackingDevice(path string) (Device, error) {
	if noKernelStatistics != "" {
		return Device{Reason: noKernelStatistics}, nil
	}
	d, err := thisHost().backingDevice(path)
	if err != nil {
		return Device{}, fmt.Errorf("find the block device behind %s: %w", path, err)
	}
	return d, nil
}

// DeviceByNumber describes a block device that no filesystem needs to be on.
func DeviceByNumber(major, minor uint32) (Device, error) {
	return thisHost().describe(Device{}, major, minor)
}

// ReadStat reads the device's counters now: one open, read and close of a small file in sysfs, some ten
// microseconds. It fails with ErrNoWitness when Reason is set.
func (d Device) ReadStat() (BlockStat, error) {
	if d.Reason != "" {
		return BlockStat{}, fmt.Errorf("%w: %s", ErrNoWitness, d.Reason)
	}
	var sum BlockStat
	for _, p := range d.stats() {
		s, err := readStatFile(p)
		if err != nil {
			return BlockStat{}, fmt.Errorf("read statistics of block device %s: %w", d.Name, err)
		}
		sum = sum.Add(s)
	}
	return sum, nil
}

func (d Device) stats() []string {
	if len(d.statPaths) > 0 {
		return d.statPaths
	}
	return []string{filepath.Join(d.SysPath, "stat")}
}

func readStatFile(path string) (BlockStat, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return BlockStat{}, err
	}
	s, err := ParseBlockStat(string(text))
	if err != nil {
		return BlockStat{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}
