package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Disk is a whole block device. Those that Device.Disks returns have a request queue of their own.
type Disk struct {
	Name         string // the kernel's: nvme0n1, sda, dm-0, loop3
	Major, Minor uint32
	SysPath      string // its directory in sysfs, without symlinks
	Hidden       bool   // no device number is visible, so it is known by its name only
	Partition    string // the partition by which it was found; empty if it was found as a disk
	root         Root
}

// wholeDisk follows a link of sysfs to a device. A partition becomes its disk, whose directory in sysfs
// contains the partition's.
func (r Root) wholeDisk(link ...string) (d Disk, err error) {
	dir, err := filepath.EvalSymlinks(r.Path(link...))
	if err != nil {
		return d, err
	}
	d.root = r
	if Root(dir).Exists("partition") {
		d.Partition, dir = filepath.Base(dir), filepath.Dir(dir)
	}
	d.Name, d.SysPath = filepath.Base(dir), dir
	number := Root(dir).Text("dev")
	if d.Hidden = number == ""; !d.Hidden { // the paths of an NVMe multipath head are hidden
		d.Major, d.Minor, err = parseDeviceNumber(number)
	}
	return d, err
}

// diskNamed finds a disk by the kernel name of the disk or of one of its partitions.
func (r Root) diskNamed(name string) (Disk, error) {
	d, err := r.wholeDisk("/sys/class/block", name)
	if errors.Is(err, fs.ErrNotExist) {
		return r.wholeDisk("/sys/block", name)
	}
	return d, err
}

// Below returns the disks of d.Members. For a member that is a partition it returns the disk of the partition.
func (d Device) Below() (disks []Disk) {
	for _, name := range d.Members {
		// A slave has a link in the directory slaves. The hidden paths of a multipath head are not there, and
		// are found by their names.
		disk, err := Root("").wholeDisk(d.SysPath, "slaves", name)
		if err != nil {
			disk, err = d.root.diskNamed(name)
		}
		if err == nil {
			disks = append(disks, disk)
		}
	}
	return disks
}

// NamedDevice describes a block device by its kernel name, with or without /dev: nvme0n1, /dev/sda. For a
// partition it returns the disk, with Partition set.
func NamedDevice(name string) (Device, error) { return Root("").namedDevice(name) }

func (r Root) namedDevice(name string) (Device, error) {
	short := strings.TrimPrefix(name, "/dev/")
	if real, err := filepath.EvalSymlinks(r.Path("/dev", short)); err == nil {
		short = filepath.Base(real) // /dev/disk/by-id/…, /dev/mapper/…
	}
	disk, err := r.diskNamed(filepath.Base(short))
	if errors.Is(err, fs.ErrNotExist) {
		return Device{}, fmt.Errorf("there is no block device %s: this machine has %s", name,
			strings.Join(r.Names("/sys/block"), ", "))
	}
	if err != nil {
		return Device{}, fmt.Errorf("look up block device %s: %w", name, err)
	}
	return Device{Disk: disk, counted: []Disk{disk}}.stacked(), nil
}

// Number returns a size or a limit of the device from a file in its sysfs directory, such as
// queue/max_segments. It returns 0 if the value is unknown. No limit of a device is 0 or less.
func (d Disk) Number(file string) int64 {
	if n := Root(d.SysPath).Integer(file); n != nil {
		return max(0, *n)
	}
	return 0
}

// ReadStats reads the counters of disks.
func ReadStats(disks []Disk) (all Reading, err error) {
	for _, d := range disks {
		s, err := d.ReadStat()
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

var nvmeHead = regexp.MustCompile(`^nvme(\d+)n(\d+)$`)

// nvmePaths lists the hidden paths of an NVMe multipath head: nvme0c0n1 and nvme0c1n1 of nvme0n1. A
// plain drive has none.
func (r Root) nvmePaths(head string) (names []string) {
	part := nvmeHead.FindStringSubmatch(head)
	if part == nil {
		return nil
	}
	// Glob fails only for an invalid pattern; this one is valid.
	paths, _ := filepath.Glob(r.Path("/sys/block", "nvme"+part[1]+"c*n"+part[2]))
	for _, p := range paths {
		names = append(names, filepath.Base(p))
	}
	return names
}

// stacked finds the devices directly below d, and decides whose counters ReadStat reads. It returns d with
// Members, BackingFile and Note set; a plain disk has none of them.
func (d Device) stacked() Device {
	at := Root(d.SysPath)
	if d.BackingFile = at.Text("loop/backing_file"); d.BackingFile != "" {
		d.Note = fmt.Sprintf("%s is a loop device over %s: its own counters are used, "+
			"not those of the device below the file", d.Name, d.BackingFile)
		return d
	}
	if d.Members = at.Names("slaves"); len(d.Members) > 0 {
		d.Note = fmt.Sprintf("%s is stacked on %s: its own counters are used, those below also "+
			"hold parity, mirror copies and other users", d.Name, strings.Join(d.Members, ", "))
		return d
	}
	if d.Members = d.root.nvmePaths(d.Name); len(d.Members) == 0 {
		return d
	}
	d.Note = fmt.Sprintf("%s is an NVMe multipath head over %s", d.Name,
		strings.Join(d.Members, ", "))
	// Multipath heads have I/O counters since Linux 6.4 (commit d4d957b53d91). Mounting a filesystem reads at
	// least the superblock. So a head without reads and writes has no counters, and the counters of its paths
	// are summed instead.
	if head, err := d.Disk.ReadStat(); err == nil && head.ReadIOs+head.WriteIOs == 0 {
		d.counted = nil
		for _, path := range d.Members {
			d.counted = append(d.counted, Disk{Name: path, SysPath: d.root.Path("/sys/block", path),
				root: d.root})
		}
		d.Note += "; this kernel counts only on the paths, whose counters are summed"
	}
	return d
}

// behindBtrfs finds the device of a btrfs filesystem through the source of its mount, because the directories
// of btrfs have anonymous device numbers. If the filesystem has several devices, d gets a Reason: no device
// alone has counters for all bytes.
func (m machine) behindBtrfs(d Device) (Device, error) {
	source := d.Mount.Source
	major, minor, err := m.blockNode(source)
	if err != nil {
		d.Reason = fmt.Sprintf("btrfs hides its device and the source of its mount, %s, "+
			"cannot be examined here (%v)", source, err)
		return d, nil
	}
	whole, err := m.describe(d, major, minor)
	if err != nil || whole.Name == "" {
		return whole, err
	}
	if devices := whole.btrfsDevices(); len(devices) > 1 {
		d.Members = devices
		d.Reason = fmt.Sprintf("btrfs spreads this filesystem over %d devices (%s): "+
			"no single one saw the bytes", len(devices), strings.Join(devices, ", "))
		return d, nil
	}
	whole.Note = strings.TrimSuffix("btrfs hides its device: found through its mount source "+
		source+"; "+whole.Note, "; ")
	return whole, nil
}

// btrfsDevices lists all devices of the btrfs filesystem that contains the device.
func (d Device) btrfsDevices() []string {
	// Glob fails only for an invalid pattern; this one is valid.
	filesystems, _ := filepath.Glob(d.root.Path("/sys/fs/btrfs/*/devices", cmp.Or(d.Partition, d.Name)))
	if len(filesystems) == 0 {
		return nil
	}
	return Root(filepath.Dir(filesystems[0])).Names()
}

// Disks lists the devices behind d that have a request queue: d itself, or devices below it. The list is sorted
// by name and has no duplicates. Stacked devices (dm, md) pass bios to the devices below and have no request
// queue. A device with a request queue has a directory mq in sysfs. If the list is empty, reason says why.
func (d Device) Disks() (found []Disk, reason string) {
	names := slices.Clone(d.Members) // the loop appends the devices below
	if d.Name != "" {
		names = []string{d.Name}
	}
	if len(names) == 0 {
		return nil, d.Reason
	}
	seen := map[string]bool{}
	for ; len(names) > 0; names = names[1:] {
		disk, err := d.root.diskNamed(names[0])
		if err != nil {
			return nil, fmt.Sprintf("%s cannot be examined: %v", names[0], err)
		}
		if seen[disk.Name] {
			continue
		}
		seen[disk.Name] = true
		if Root(disk.SysPath).Exists("mq") {
			found = append(found, disk)
			continue
		}
		below := Root(disk.SysPath).Names("slaves")
		if len(below) == 0 {
			below = d.root.nvmePaths(disk.Name)
		}
		if len(below) == 0 {
			return nil, disk.Name + " handles bios without requests and names no devices below " +
				"it (zram, brd and other RAM disks do that)"
		}
		names = append(names, below...)
	}
	slices.SortFunc(found, func(a, b Disk) int { return strings.Compare(a.Name, b.Name) })
	return found, ""
}

// StorageNodes lists the NUMA nodes of the devices behind directories, ordered and without duplicates.
// Buffers should be on these nodes. A directory that does not exist yet has the devices of its nearest existing
// parent. The list is empty on a machine with one node, and for devices without a node: loop devices, virtual
// disks, network filesystems.
func StorageNodes(dirs ...string) []int {
	if noKernelStatistics != "" {
		return nil
	}
	return thisMachine().storageNodes(dirs)
}

func (m machine) storageNodes(dirs []string) (nodes []int) {
	// Glob fails only for an invalid pattern; this one is valid.
	if nodes, _ := filepath.Glob(m.Path("/sys/devices/system/node/node[0-9]*")); len(nodes) < 2 {
		return nil
	}
	for _, dir := range dirs {
		at, err := Existing(dir)
		if err != nil {
			continue // the code that opens the directory reports the error
		}
		d, err := m.backingDevice(at)
		if err != nil {
			continue
		}
		disks, _ := d.Disks()
		for _, disk := range disks {
			if n := disk.node(); n >= 0 && !slices.Contains(nodes, n) {
				nodes = append(nodes, n)
			}
		}
	}
	slices.Sort(nodes)
	return nodes
}

// node returns the NUMA node of the device, -1 if unknown. It goes up in sysfs until a directory has a node: an
// NVMe namespace is below its controller, and the controller below its PCI slot, which has numa_node.
func (d Disk) node() int {
	for dir := d.SysPath; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if n := Root(dir).Integer("numa_node"); n != nil && *n >= 0 {
			return int(*n)
		}
	}
	return -1
}
