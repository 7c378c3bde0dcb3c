package discover

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
func link(dir string) *Link {
	// A namespace is below its controller, and the controller below its slot.
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if host.Root(dir).Text("current_link_speed") != "" {
			return linkAt(dir)
		}
	}
	return nil
}

// linkAt returns the link of a PCI device. It returns nil for the width 0, which virtual devices report.
func linkAt(dir string) *Link {
	at := host.Root(dir)
	l := &Link{Address: filepath.Base(dir), Speed: at.Text("current_link_speed"),
		MaxGeneration: generation(at.Text("max_link_speed")),
		Width:         int(units.OrZero(at.Integer("current_link_width"))),
		MaxWidth:      int(units.OrZero(at.Integer("max_link_width")))}
	l.Generation = generation(l.Speed)
	if l.Generation == 0 || l.Width == 0 {
		return nil
	}
	// The kernel reports -1 for a single node and for an unknown one.
	if n := at.Integer("numa_node"); n != nil && *n >= 0 {
		l.NUMANode = n
	}
	return l
}

// rates are the transfers per second of a link of width 1 in each PCIe generation, in GT/s.
var rates = []float64{2.5, 5, 8, 16, 32, 64}

// generation returns the PCIe generation of a speed such as "16.0 GT/s PCIe", 0 if unknown.
func generation(speed string) int {
	number, _, _ := strings.Cut(speed, " ")
	v, _ := strconv.ParseFloat(number, 64)
	return slices.Index(rates, v) + 1
}

// GiBPerSecond returns the bandwidth of a link in one direction, before packet overhead. The line
// coding uses 8 of 10 bits up to generation 2, and 128 of 130 bits from generation 3.
func (l Link) GiBPerSecond() float64 {
	if l.Generation < 1 || l.Generation > len(rates) {
		return 0
	}
	// Without the coding, a link of generation 2 would be a quarter too fast.
	coding := 128.0 / 130
	if l.Generation <= 2 {
		coding = 0.8
	}
	return rates[l.Generation-1] * 1e9 * coding / 8 * float64(l.Width) / (1 << 30)
}

// Degraded reports whether the link is slower or narrower than the device supports.
func (l Link) Degraded() bool {
	return l.MaxGeneration > l.Generation || l.MaxWidth > l.Width
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

// gpus returns NVIDIA's display controllers. The PCI bus has the address, the driver's files have the
// name and the UUID, and nvidia-smi has the memory. note says why the list is empty or incomplete.
func (m machine) gpus() (list []GPU, note string) {
	list = []GPU{}
	for _, address := range m.Names("/sys/bus/pci/devices") {
		at := host.Root(m.Path("/sys/bus/pci/devices", address))
		if at.Text("vendor") != nvidiaVendor || !strings.HasPrefix(at.Text("class"), displayClass) {
			continue
		}
		driver := host.Root(m.Path("/proc/driver/nvidia/gpus", address))
		g := GPU{Index: len(list), address: address, Name: "NVIDIA device " + at.Text("device"),
			UUID: driver.Field("GPU UUID:", "information"), Link: linkAt(string(at)),
			Source: "PCI bus"}
		if name := driver.Field("Model:", "information"); name != "" {
			g.Name, g.Source = name, "/proc/driver/nvidia"
		}
		list = append(list, g)
	}
	switch {
	case len(list) > 0:
		return list, m.memories(list)
	case linux():
		note = "no NVIDIA card is on the PCI bus"
	}
	return list, note
}

// memories sets the memory of the GPUs from nvidia-smi, which comes with the driver. It returns why the
// memory is unknown.
func (m machine) memories(list []GPU) (note string) {
	table, err := m.nvidiaSMI("--query-gpu=pci.bus_id,memory.total",
		"--format=csv,noheader,nounits")
	if err != nil {
		return fmt.Sprintf("memory is unknown: nvidia-smi, which comes with the driver: %v", err)
	}
	for line := range strings.Lines(table) {
		bus, memory, _ := strings.Cut(strings.TrimSpace(line), ", ")
		mib, err := strconv.ParseInt(memory, 10, 64)
		for i := range list {
			// nvidia-smi writes the PCI domain with eight digits and in capitals.
			if err == nil && strings.HasSuffix(strings.ToLower(bus), list[i].address) {
				list[i].MemoryBytes, list[i].Source = new(mib<<20), "nvidia-smi"
			}
		}
	}
	return ""
}
