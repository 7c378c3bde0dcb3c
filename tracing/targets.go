package tracing

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxTargets is MAX_DEVICES in bpf/block.h.
const maxTargets = 16

// target is a device whose requests are traced: one that has a request queue of its own.
type target struct {
	name         string
	major, minor uint32
	sysPath      string
	named        bool // no device number is visible, so it is found by its name
}

// targets descends from a device to those that have requests. Stacked ones (dm, md) pass bios on and never see a request;
// sysfs shows who has a queue by the directory mq. The answer is in order and without repetition; an empty one with a
// reason means that the device cannot be isolated.
func (h host) targets(d Device) (found []target, reason string) {
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
		if seen[t.name] {
			return ""
		}
		seen[t.name] = true
		if exists(filepath.Join(t.sysPath, "mq")) || depth > 8 {
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
			return t.name + " handles bios without requests and names no devices below it (zram, brd and other RAM disks do that)"
		}
		return ""
	}
	for _, n := range names {
		if why := walk(n, 0); why != "" {
			return nil, why
		}
	}
	slices.SortFunc(found, func(a, b target) int { return strings.Compare(a.name, b.name) })
	if len(found) > maxTargets {
		return nil, fmt.Sprintf("%s is spread over %d devices, at most %d can be traced at once", strings.Join(names, ", "), len(found), maxTargets)
	}
	return found, ""
}

// below lists what a device without requests passes them to.
func (h host) below(t target) []string {
	if slaves := names(filepath.Join(t.sysPath, "slaves")); len(slaves) > 0 {
		return slaves
	}
	if m := nvmeHead.FindStringSubmatch(t.name); m != nil {
		paths, _ := filepath.Glob(h.sys("block", "nvme"+m[1]+"c*n"+m[2])) // a fixed pattern: no error possible
		for i := range paths {
			paths[i] = filepath.Base(paths[i])
		}
		return paths
	}
	return nil
}

// wholeDevice finds a device by name; a partition becomes its disk.
func (h host) wholeDevice(name string) (target, error) {
	dir, err := filepath.EvalSymlinks(h.sys("class/block", name))
	if os.IsNotExist(err) {
		dir, err = filepath.EvalSymlinks(h.sys("block", name))
	}
	if err != nil {
		return target{}, err
	}
	if exists(filepath.Join(dir, "partition")) {
		dir = filepath.Dir(dir)
	}
	t := target{name: filepath.Base(dir), sysPath: dir}
	number := line(filepath.Join(dir, "dev"))
	if number == "" { // hidden, as the paths of an NVMe multipath head
		t.named = true
		return t, nil
	}
	t.major, t.minor, err = parseDeviceNumber(number)
	return t, err
}

// sectors is the device's size, 0 when unknown.
func (t target) sectors() uint64 {
	var n uint64
	_, _ = fmt.Sscan(line(filepath.Join(t.sysPath, "size")), &n)
	return n
}

// maxSegments is the smallest limit of the devices, 0 when unknown.
func maxSegments(ts []target) (least int64) {
	for _, t := range ts {
		var n int64
		_, _ = fmt.Sscan(line(filepath.Join(t.sysPath, "queue/max_segments")), &n)
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// zoneSectors is the width of an LBA bucket: 10 GiB, doubled until the largest device fits.
func zoneSectors(ts []target) uint64 {
	const tenGiB = 10 << 30 / SectorSize
	width := uint64(tenGiB)
	for _, t := range ts {
		for t.sectors() > width*lbaBuckets {
			width *= 2
		}
	}
	return width
}
