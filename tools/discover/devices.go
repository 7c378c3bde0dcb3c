package discover

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tracing/host"
)

// notDisks matches block devices without persistent storage of their own. A loop device is a file on
// another device, which is listed.
var notDisks = regexp.MustCompile(`^(loop|ram|zram|sr|fd|nbd)\d*$`)

// devices returns the whole block devices that have a size.
func (m machine) devices() []Device {
	list := []Device{}
	for _, name := range m.Names("/sys/block") {
		if notDisks.MatchString(name) {
			continue
		}
		// The target of the link is the device's directory on its bus, below its PCIe device.
		dir, err := filepath.EvalSymlinks(m.Path("/sys/block/" + name))
		if err != nil {
			continue
		}
		d := Device{Device: result.BlockDevice(dir)}
		// Empty card readers and removed drives have the size 0.
		if units.OrZero(d.SizeBytes) == 0 {
			continue
		}
		// Device mapper and md devices list their members.
		slaves := host.Root(filepath.Join(dir, "slaves"))
		for _, member := range slaves.Names() {
			if below, err := filepath.EvalSymlinks(slaves.Path(member)); err == nil {
				d.Members = append(d.Members, result.BlockDevice(below))
			}
		}
		d.Link, d.NVMe = link(dir), nvme(dir)
		list = append(list, d)
	}
	return list
}

// link returns the link of the nearest PCIe device above a device's directory, nil if there is none.
func link(dir string) *host.Link {
	// A namespace is below its controller, and the controller below its slot.
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if host.Root(dir).Text("current_link_speed") != "" {
			return host.Root(dir).Link()
		}
	}
	return nil
}

// nvme returns the controller of an NVMe namespace, nil for other devices. For a multipath head the link
// leads to the subsystem, which has files of the same names.
func nvme(dir string) *NVMe {
	ctrl, err := filepath.EvalSymlinks(filepath.Join(dir, "device"))
	name, at := filepath.Base(ctrl), host.Root(ctrl)
	if err != nil || !strings.HasPrefix(name, "nvme") {
		return nil
	}
	return &NVMe{
		Controller: name, Model: at.Text("model"), Serial: at.Text("serial"),
		Firmware: at.Text("firmware_rev"), Transport: at.Text("transport"),
		Queues: at.Integer("queue_count"), State: at.Text("state"), Subsystem: at.Text("subsysnqn"),
	}
}

// The PCI vendor and class of a card, in hexadecimal.
const (
	nvidiaVendor = "0x10de"
	displayClass = "0x03" // VGA and 3D controllers
)

// gpus returns NVIDIA's display controllers on the PCI bus, with what their driver knows, and cards that only
// the driver knows. note says why the list is empty or incomplete.
func (m machine) gpus() (list []GPU, note string) {
	list = []GPU{}
	for _, address := range m.Names("/sys/bus/pci/devices") {
		at := host.Root(m.Path("/sys/bus/pci/devices", address))
		if at.Text("vendor") != nvidiaVendor || !strings.HasPrefix(at.Text("class"), displayClass) {
			continue
		}
		driver := host.Root(m.Path("/proc/driver/nvidia/gpus", address))
		g := GPU{address: address, Name: "NVIDIA device " + at.Text("device"),
			UUID: driver.Field("GPU UUID:", "information"), Link: at.Link(), Source: "PCI bus"}
		if name := driver.Field("Model:", "information"); name != "" {
			g.Name, g.Source = name, "/proc/driver/nvidia"
		}
		list = append(list, g)
	}
	onBus := len(list)
	cards, err := m.cards()
	for _, c := range cards {
		i := slices.IndexFunc(list, func(g GPU) bool { return g.address == c.Address })
		if i < 0 {
			i, list = len(list), append(list, GPU{Link: c.Link})
		}
		g := &list[i]
		g.Name, g.UUID = cmp.Or(c.Name, g.Name), cmp.Or(c.UUID, g.UUID)
		g.MemoryBytes, g.Driver, g.Source = c.MemoryBytes, c.Driver, c.Source
	}
	for i := range list {
		list[i].Index = i
	}
	switch {
	case onBus > 0 && err != nil:
		note = fmt.Sprintf("memory is unknown: %v", err)
	case len(list) == 0 && linux():
		note = "no NVIDIA card is on the PCI bus"
	}
	return list, note
}
