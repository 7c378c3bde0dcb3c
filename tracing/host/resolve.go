package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// host is the machine that is asked. Tests put a fabricated tree below root and answer the two system calls.
type host struct {
	root      string // prefix of /sys and /proc, "" on the real machine
	identify  func(path string) (identity, error)
	blockNode func(path string) (major, minor uint32, err error) // device number of a node such as /dev/sda1
}

// identity is what the kernel says about one path.
type identity struct {
	path         string // absolute, without symlinks
	major, minor uint32 // of the filesystem that holds it (st_dev)
	mountID      int    // 0 where the kernel does not tell
}

func (h host) sys(elem ...string) string {
	return filepath.Join(append([]string{h.root, "/sys"}, elem...)...)
}

// backingDevice walks path → device number → sysfs → whole device.
func (h host) backingDevice(path string) (Device, error) {
	at, err := h.identify(path)
	if err != nil {
		return Device{}, err
	}
	mount, err := h.mountOf(at)
	if err != nil {
		return Device{}, err
	}
	d := Device{Filesystem: mount.Type, Mount: mount}
	if at.major != 0 {
		return h.describe(d, at.major, at.minor)
	}
	if mount.Type == "btrfs" {
		return h.behindBtrfs(d)
	}
	d.Reason = whyNone(mount)
	return d, nil
}

func (h host) mountOf(at identity) (Mount, error) {
	f, err := os.Open(filepath.Join(h.root, "/proc/self/mountinfo"))
	if err != nil {
		return Mount{}, fmt.Errorf("read the mount table: %w", err)
	}
	defer f.Close()
	mounts, err := ParseMounts(f)
	if err != nil {
		return Mount{}, err
	}
	m, _ := findMount(mounts, at) // a path outside all mounts (chroot): a zero Mount, the device number still tells
	return m, nil
}

// describe fills in the whole device for a device number that the kernel gave.
func (h host) describe(d Device, major, minor uint32) (Device, error) {
	number := fmt.Sprintf("%d:%d", major, minor)
	dir, err := filepath.EvalSymlinks(h.sys("dev/block", number))
	if errors.Is(err, fs.ErrNotExist) {
		d.Major, d.Minor = major, minor
		d.Reason = fmt.Sprintf("the filesystem is on device %s, which /sys/dev/block does not show (a container or sandbox with its own view of /sys)", number)
		return d, nil
	}
	if err != nil {
		return Device{}, fmt.Errorf("look up device %s: %w", number, err)
	}
	if exists(filepath.Join(dir, "partition")) {
		d.Partition = filepath.Base(dir)
		dir = filepath.Dir(dir) // sysfs keeps partitions as directories of their disk
		whole, err := os.ReadFile(filepath.Join(dir, "dev"))
		if err != nil {
			return Device{}, fmt.Errorf("partition %s: find its disk: %w", d.Partition, err)
		}
		if major, minor, err = parseDeviceNumber(string(whole)); err != nil {
			return Device{}, fmt.Errorf("partition %s: its disk: %w", d.Partition, err)
		}
	}
	d.Name, d.SysPath, d.Major, d.Minor = filepath.Base(dir), dir, major, minor
	d = h.stack(d)
	if off := d.uncounted(); off != "" {
		d.Reason = fmt.Sprintf("statistics of %s are switched off (echo 1 > /sys/block/%s/queue/iostats)", off, off)
	}
	return d, nil
}

// uncounted names a device that keeps no statistics among those that ReadStat reads. One that sees bios, not requests, may
// say so and count all the same: the queues of device mapper and of NVMe multipath heads had the flag cleared (seen on Linux
// 5.10 to 6.8). A filesystem was mounted from it, which reads at least the superblock.
func (d Device) uncounted() string {
	for _, path := range d.stats() {
		dir := filepath.Dir(path)
		if line(filepath.Join(dir, "queue/iostats")) != "0" {
			continue
		}
		s, err := readStatFile(path)
		if exists(filepath.Join(dir, "mq")) || err != nil || s.ReadIOs+s.WriteIOs == 0 {
			return filepath.Base(dir)
		}
	}
	return ""
}

var nvmeHead = regexp.MustCompile(`^nvme(\d+)n(\d+)$`)

// stack tells what lies below a device that is not a plain disk.
func (h host) stack(d Device) Device {
	if file := line(filepath.Join(d.SysPath, "loop/backing_file")); file != "" {
		d.BackingFile = file
		d.Note = fmt.Sprintf("%s is a loop device over %s: its own counters are used, not those of the device below the file", d.Name, file)
		return d
	}
	if slaves := names(filepath.Join(d.SysPath, "slaves")); len(slaves) > 0 {
		d.Members = slaves
		d.Note = fmt.Sprintf("%s is stacked on %s: its own counters are used, those below also hold parity, mirror copies and other users", d.Name, strings.Join(slaves, ", "))
		return d
	}
	if m := nvmeHead.FindStringSubmatch(d.Name); m != nil {
		return h.multipath(d, m[1], m[2])
	}
	return d
}

// multipath handles native NVMe multipath: nvme0n1 is the head, the hidden nvme0c0n1, nvme0c1n1 are its paths. Heads
// count their own I/O only since Linux 6.4 (commit d4d957b53d91). A filesystem was mounted from this one, which reads at
// least the superblock, so a head whose counters are all zero does not count and its paths are summed instead.
func (h host) multipath(d Device, subsystem, namespace string) Device {
	paths, err := filepath.Glob(h.sys("block", "nvme"+subsystem+"c*n"+namespace))
	if err != nil || len(paths) == 0 {
		return d // a plain drive with a single path
	}
	for _, p := range paths {
		d.Members = append(d.Members, filepath.Base(p))
	}
	slices.Sort(d.Members)
	d.Note = fmt.Sprintf("%s is an NVMe multipath head over %s", d.Name, strings.Join(d.Members, ", "))
	head, err := readStatFile(filepath.Join(d.SysPath, "stat"))
	if err == nil && head.ReadIOs+head.WriteIOs == 0 {
		for _, m := range d.Members {
			d.statPaths = append(d.statPaths, h.sys("block", m, "stat"))
		}
		d.Note += "; this kernel counts only on the paths, whose counters are summed"
	}
	return d
}

// behindBtrfs finds the device of a btrfs filesystem, whose directories have anonymous device numbers, through the
// source of its mount. With several devices no single one is the witness.
func (h host) behindBtrfs(d Device) (Device, error) {
	major, minor, err := h.blockNode(d.Mount.Source)
	if err != nil {
		d.Reason = fmt.Sprintf("btrfs hides its device and the source of its mount, %s, cannot be examined here (%v)", d.Mount.Source, err)
		return d, nil
	}
	whole, err := h.describe(d, major, minor)
	if err != nil || whole.Name == "" {
		return whole, err
	}
	if devices := h.btrfsDevices(whole); len(devices) > 1 {
		d.Members = devices
		d.Reason = fmt.Sprintf("btrfs spreads this filesystem over %d devices (%s): no single one saw the bytes", len(devices), strings.Join(devices, ", "))
		return d, nil
	}
	found := fmt.Sprintf("btrfs hides its device: found through its mount source %s", d.Mount.Source)
	if whole.Note != "" {
		found += "; " + whole.Note
	}
	whole.Note = found
	return whole, nil
}

// btrfsDevices lists all devices of the btrfs filesystem that has the given one among them.
func (h host) btrfsDevices(d Device) []string {
	name := d.Name
	if d.Partition != "" {
		name = d.Partition
	}
	filesystems, _ := filepath.Glob(h.sys("fs/btrfs/*/devices", name)) // a fixed pattern: no error possible
	if len(filesystems) == 0 {
		return nil
	}
	return names(filepath.Dir(filesystems[0]))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// line returns the first line of a small sysfs file, "" when there is none.
func line(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return first
}

// names lists a directory in order, empty when there is none.
func names(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	out := make([]string, 0, len(entries))
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
