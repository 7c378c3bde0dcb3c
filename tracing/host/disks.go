package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Disk is a whole block device that has a request queue of its own.
type Disk struct {
	Name         string
	Major, Minor uint32
	SysPath      string
	Hidden       bool // no device number is visible, so it is known by its name only
}

// Disks lists the devices behind d that have requests: d itself, or what lies below it. An empty answer has a reason.
func (d Device) Disks() ([]Disk, string) { return thisHost().disks(d) }

// disks descends from a device to those that have requests. Stacked ones (dm, md) pass bios on and never see a request;
// sysfs shows who has a queue by the directory mq. The answer is in order and without repetition; an empty one with a
// reason means that the device cannot be isolated.
func (h host) disks(d Device) (found []Disk, reason string) {
	if d.Name == "" && len(d.Members) == 0 {
		return nil, d.Reason
	}
	names := d.Members
	if d.Name != "" {
		names = []string{d.Name}
	}
	seen := map[string]bool{}
	var walk func(name string, depth int) string
	walk = func(name string, depth int) string {
		t, err := h.wholeDevice(name)
		if err != nil {
			return fmt.Sprintf("%s cannot be examined: %v", name, err)
		}
		if seen[t.Name] {
			return ""
		}
		seen[t.Name] = true
		if exists(filepath.Join(t.SysPath, "mq")) || depth > 8 {
			found = append(found, t)
			return ""
		}
		below := h.below(t)
		for _, b := range below {
			if why := walk(b, depth+1); why != "" {
				return why
			}
		}
		if len(below) == 0 {
			return t.Name + " handles bios without requests and names no devices below it (zram, brd and other RAM disks do that)"
		}
		return ""
	}
	for _, n := range names {
		if why := walk(n, 0); why != "" {
			return nil, why
		}
	}
	slices.SortFunc(found, func(a, b Disk) int { return strings.Compare(a.Name, b.Name) })
	return found, ""
}

// below lists what a device without requests passes them to.
func (h host) below(t Disk) []string {
	if slaves := names(filepath.Join(t.SysPath, "slaves")); len(slaves) > 0 {
		return slaves
	}
	if m := nvmeHead.FindStringSubmatch(t.Name); m != nil {
		paths, _ := filepath.Glob(h.sys("block", "nvme"+m[1]+"c*n"+m[2])) // a fixed pattern: no error possible
		for i := range paths {
			paths[i] = filepath.Base(paths[i])
		}
		return paths
	}
	return nil
}

// wholeDevice finds a device by name; a partition becomes its disk.
func (h host) wholeDevice(name string) (Disk, error) {
	dir, err := filepath.EvalSymlinks(h.sys("class/block", name))
	if os.IsNotExist(err) {
		dir, err = filepath.EvalSymlinks(h.sys("block", name))
	}
	if err != nil {
		return Disk{}, err
	}
	if exists(filepath.Join(dir, "partition")) {
		dir = filepath.Dir(dir)
	}
	t := Disk{Name: filepath.Base(dir), SysPath: dir}
	number := line(filepath.Join(dir, "dev"))
	if number == "" { // hidden, as the paths of an NVMe multipath head
		t.Hidden = true
		return t, nil
	}
	t.Major, t.Minor, err = parseDeviceNumber(number)
	return t, err
}

// Sectors is the device's size, 0 when unknown.
func (d Disk) Sectors() uint64 {
	var n uint64
	_, _ = fmt.Sscan(line(filepath.Join(d.SysPath, "size")), &n)
	return n
}

// MaxSegments is how many pieces of memory one request may have, 0 when unknown.
func (d Disk) MaxSegments() (n int64) {
	_, _ = fmt.Sscan(line(filepath.Join(d.SysPath, "queue/max_segments")), &n)
	return n
}

// ReadStat reads the disk's counters now.
func (d Disk) ReadStat() (BlockStat, error) { return readStatFile(filepath.Join(d.SysPath, "stat")) }
