package discover

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"kvbench/tracing/host"
)

// notDisks are block devices that hold nothing of their own, or nothing that survives. A loop
// device is a file, and the device below it is listed.
var notDisks = regexp.MustCompile(`^(loop|ram|zram|sr|fd|nbd)\d*$`)

// found reads what lies below a path that is already known to be below the machine's root.
const found = host.Root("")

// devices lists the whole block devices that have a size.
func (m machine) devices() []Device {
	list := []Device{}
	for _, name := range m.Names("/sys/block") {
		if notDisks.MatchString(name) {
			continue
		}
		// The links lead to the place of the device on its bus, by which its PCIe link is found.
		dir, err := filepath.EvalSymlinks(m.Path("/sys/block/" + name))
		if err != nil {
			continue
		}
		d := Device{DeviceEnvironment: host.ReadBlockDevice(dir)}
		// Empty card readers and drives that are gone have no size.
		if d.SizeBytes == nil || *d.SizeBytes == 0 {
			continue
		}
		// Device mapper and md list what they are made of.
		for _, member := range found.Names(dir, "slaves") {
			if below, err := filepath.EvalSymlinks(filepath.Join(dir, "slaves", member)); err ==
				nil {
				d.Members = append(d.Members, host.ReadBlockDevice(below))
			}
		}
		d.Link = m.link(dir)
		d.NVMe = nvme(dir)
		list = append(list, d)
	}
	return list
}

// link finds the PCIe device above a device's directory: the nearest that has a link.
func (m machine) link(dir string) *Link {
	top := m.Path("/sys")
	if real, err := filepath.EvalSymlinks(top); err == nil {
		top = real
	}
	// Upwards: a namespace hangs below its controller, and that below its slot.
	for ; len(dir) > len(top); dir = filepath.Dir(dir) {
		if speed := found.Text(dir, "current_link_speed"); speed != "" {
			return linkAt(dir)
		}
	}
	return nil
}

// linkAt reads the link of a PCI device. A width of 0 means that nothing is known (virtual
// devices).
func linkAt(dir string) *Link {
	l := &Link{Address: filepath.Base(dir), Speed: found.Text(dir, "current_link_speed"),
		MaxGeneration: generation(found.Text(dir, "max_link_speed"))}
	l.Generation = generation(l.Speed)
	l.Width, _ = strconv.Atoi(found.Text(dir, "current_link_width"))
	l.MaxWidth, _ = strconv.Atoi(found.Text(dir, "max_link_width"))
	if l.Generation == 0 || l.Width == 0 {
		return nil
	}
	// -1 is what the kernel says where there is one node, or none is known.
	if n := found.Integer(dir, "numa_node"); n != nil && *n >= 0 {
		l.NUMANode = n
	}
	return l
}

// rates are the transfers per second of a link of width 1 in each PCIe generation, in GT/s.
var rates = []float64{2.5, 5, 8, 16, 32, 64}

// generation of a speed such as "16.0 GT/s PCIe", 0 when unknown.
func generation(speed string) int {
	number, _, _ := strings.Cut(speed, " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	for i, r := range rates {
		if v == r {
			return i + 1
		}
	}
	return 0
}

// GiBPerSecond is what a link carries in one direction, before packet overhead: 8 of 10 bits up to
// generation 2, 128 of 130 from then on.
func (l Link) GiBPerSecond() float64 {
	if l.Generation < 1 || l.Generation > len(rates) {
		return 0
	}
	// Without it a link of generation 2 would seem a quarter faster than it is.
	coding := 128.0 / 130
	if l.Generation <= 2 {
		coding = 0.8
	}
	return rates[l.Generation-1] * 1e9 * coding / 8 * float64(l.Width) / (1 << 30)
}

// Degraded tells whether the link runs below what both its ends could.
func (l Link) Degraded() bool {
	return l.MaxGeneration > l.Generation || l.MaxWidth > l.Width
}

// nvme reads the controller of an NVMe namespace, nil for other devices. The device link of a
// multipath head leads to its subsystem, which has the same names.
func nvme(dir string) *NVMe {
	ctrl, err := filepath.EvalSymlinks(filepath.Join(dir, "device"))
	if err != nil || !strings.HasPrefix(filepath.Base(ctrl), "nvme") {
		return nil
	}
	return &NVMe{
		Controller: filepath.Base(ctrl), Model: found.Text(ctrl, "model"),
		Serial: found.Text(ctrl, "serial"), Firmware: found.Text(ctrl, "firmware_rev"),
		Transport: found.Text(ctrl, "transport"), Queues: found.Integer(ctrl, "queue_count"),
		State: found.Text(ctrl, "state"), Subsystem: found.Text(ctrl, "subsysnqn"),
	}
}
