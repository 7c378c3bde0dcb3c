package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Device is the block device behind a directory, or the reason why there is none. It holds no descriptor,
// may be copied, and its methods may be called from any goroutine.
type Device struct {
	// Disk is the whole device, with the partition that holds the filesystem. Its name is empty
	// when there is none.
	Disk

	Filesystem string // type as the kernel names it: ext4, xfs, tmpfs, nfs4, overlay
	Mount      Mount  // the mount that contains the directory; zero if it was not found

	// Members are the devices directly below a stacked one (dm, md: the kernel's slaves; an NVMe
	// multipath head: its paths). Their statistics show the same bytes once more and must not be
	// added to the device's.
	Members     []string
	BackingFile string // the file below a loop device

	// Note is one sentence about the device's counters for readers; empty for a plain disk.
	Note string
	// Reason is one sentence that says why the kernel has no counters for this directory. If it is
	// empty, ReadStat works. Name may be known nevertheless (statistics switched off).
	Reason string

	counted []Disk // the disks that ReadStat reads: the device, or the paths of a multipath head
}

// BackingDevice finds the block device behind the directory or file at path, which must exist. A
// directory without a device is no error: Device.Reason says why. An error means that the path could not
// be examined.
func BackingDevice(path string) (Device, error) {
	if noKernelStatistics != "" {
		return Device{Reason: noKernelStatistics}, nil
	}
	d, err := thisMachine().backingDevice(path)
	if err != nil {
		return Device{}, fmt.Errorf("find the block device behind %s: %w", path, err)
	}
	return d, nil
}

// Together combines several devices into one, without duplicates: its counters are their sum, and Members
// are their names. If one of them has a Reason, it has that Reason.
func Together(all ...Device) Device {
	if !slices.ContainsFunc(all, func(o Device) bool {
		return o.Name == "" || o.SysPath != all[0].SysPath
	}) {
		return all[0]
	}
	var d Device
	var notes []string
	for _, one := range all {
		d.Reason = cmp.Or(d.Reason, one.Reason)
		if one.Note != "" && !slices.Contains(notes, one.Note) {
			notes = append(notes, one.Note)
		}
		names := one.Members
		if one.Name != "" {
			names = []string{one.Name}
		}
		for _, name := range names {
			if !slices.Contains(d.Members, name) {
				d.Members = append(d.Members, name)
			}
		}
		for _, disk := range one.counted { // the disk of two partitions counts once
			if !slices.ContainsFunc(d.counted,
				func(o Disk) bool { return o.SysPath == disk.SysPath }) {
				d.counted = append(d.counted, disk)
			}
		}
	}
	d.Note = strings.Join(notes, "; ")
	return d
}

// Title returns the name of the device, or of its members: sda, nvme0n1+nvme1n1; "" without a device.
func (d Device) Title() string { return cmp.Or(d.Name, strings.Join(d.Members, "+")) }

// ReadStat reads the counters of each device behind d: one open, read and close of a small file in sysfs, which
// takes some ten microseconds. It fails with the Reason if that is set.
func (d Device) ReadStat() (Reading, error) {
	if d.Reason != "" || len(d.counted) == 0 {
		return nil, fmt.Errorf("no block device statistics: %s", d.Reason)
	}
	s, err := ReadStats(d.counted)
	if err != nil {
		err = fmt.Errorf("read statistics of block device %s: %w", d.Name, err)
	}
	return s, err
}

// backingDevice walks path → device number → sysfs → whole device.
func (m machine) backingDevice(path string) (Device, error) {
	at, err := m.identify(path)
	if err != nil {
		return Device{}, err
	}
	mount, err := m.mountOf(at)
	if err != nil {
		return Device{}, err
	}
	d := Device{Disk: Disk{root: m.Root}, Filesystem: mount.Type, Mount: mount}
	switch {
	case at.major != 0:
		return m.describe(d, at.major, at.minor)
	case mount.Type == "btrfs":
		return m.behindBtrfs(d)
	}
	d.Reason = mount.whyNoDevice()
	return d, nil
}

// mountOf finds the mount that contains a path. Without one, the device number is still known.
func (m machine) mountOf(at identity) (Mount, error) {
	mounts, err := m.mounts()
	return findMount(mounts, at), err
}

// describe fills in the device of a device number.
func (m machine) describe(d Device, major, minor uint32) (Device, error) {
	number := fmt.Sprintf("%d:%d", major, minor)
	disk, err := m.wholeDisk("/sys/dev/block", number)
	if errors.Is(err, fs.ErrNotExist) {
		d.Major, d.Minor = major, minor
		d.Reason = fmt.Sprintf("the filesystem is on device %s, which /sys/dev/block does not "+
			"show (a container or sandbox with its own view of /sys)", number)
		return d, nil
	}
	if err != nil {
		return Device{}, fmt.Errorf("look up device %s: %w", number, err)
	}
	d.Disk, d.counted = disk, []Disk{disk}
	d = d.stacked()
	if off := d.uncounted(); off != "" {
		d.Reason = fmt.Sprintf("statistics of %[1]s are switched off (echo 1 > "+
			"/sys/block/%[1]s/queue/iostats)", off)
	}
	return d, nil
}

// uncounted returns the name of a device without statistics among those that ReadStat reads. A cleared
// flag is not enough: the queues of device mapper and of NVMe multipath heads, which process bios and not
// requests, have it cleared and count nevertheless (Linux 5.10 to 6.8). Mounting a filesystem reads at
// least the superblock, so a device that counts has counted reads.
func (d Device) uncounted() string {
	for _, disk := range d.counted {
		at := Root(disk.SysPath)
		if at.Text("queue/iostats") != "0" {
			continue
		}
		s, err := disk.ReadStat()
		if at.Exists("mq") || err != nil || s.ReadIOs+s.WriteIOs == 0 {
			return disk.Name
		}
	}
	return ""
}
