package discover

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/environment"
	"kvbench/kvbench/units"
	"kvbench/tracing/host"
)

// notDisks are block devices without storage of their own, or without persistent storage. A loop
// device is a file, and the device below it is listed.
var notDisks = regexp.MustCompile(`^(loop|ram|zram|sr|fd|nbd)\d*$`)

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
		d := Device{Device: environment.BlockDevice(dir)}
		// Empty card readers and drives that are gone have no size.
		if units.OrZero(d.SizeBytes) == 0 {
			continue
		}
		// Device mapper and md list what they are made of.
		slaves := host.Root(filepath.Join(dir, "slaves"))
		for _, member := range slaves.Names() {
			if below, err := filepath.EvalSymlinks(slaves.Path(member)); err == nil {
				d.Members = append(d.Members, environment.BlockDevice(below))
			}
		}
		d.Link, d.NVMe = link(dir), nvme(dir)
		list = append(list, d)
	}
	return list
}

// link finds the PCIe device above a device's directory: the nearest that has a link.
func link(dir string) *Link {
	// Upwards: a namespace hangs below its controller, and that below its slot.
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if host.Root(dir).Text("current_link_speed") != "" {
			return linkAt(dir)
		}
	}
	return nil
}

// linkAt reads the link of a PCI device. A width of 0 means that nothing is known (virtual
// devices).
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
	// The kernel reports -1 with one node, or an unknown one.
	if n := at.Integer("numa_node"); n != nil && *n >= 0 {
		l.NUMANode = n
	}
	return l
}

// rates are the transfers per second of a link of width 1 in each PCIe generation, in GT/s.
var rates = []float64{2.5, 5, 8, 16, 32, 64}

// generation of a speed such as "16.0 GT/s PCIe", 0 when unknown.
func generation(speed string) int {
	number, _, _ := strings.Cut(speed, " ")
	v, _ := strconv.ParseFloat(number, 64)
	return slices.Index(rates, v) + 1
}

// GiBPerSecond is the bandwidth of a link in one direction, before packet overhead: 8 of 10 bits up
// to generation 2, 128 of 130 from then on.
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

// Degraded reports whether the link runs below what both its ends could.
func (l Link) Degraded() bool {
	return l.MaxGeneration > l.Generation || l.MaxWidth > l.Width
}

// nvme reads the controller of an NVMe namespace, nil for other devices. The device link of a
// multipath head leads to its subsystem, which has the same names.
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

// gpus are NVIDIA's display controllers on the PCI bus. The bus has a number, the driver's files
// have name and UUID, and only the driver's library has the memory: see memories.
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

// memories adds the memory of the cards, by a program that comes with the driver. It returns why
// the memory is unknown.
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
			// The program writes domains with eight digits, and in capitals.
			if err == nil && strings.HasSuffix(strings.ToLower(bus), list[i].address) {
				list[i].MemoryBytes, list[i].Source = new(mib<<20), "nvidia-smi"
			}
		}
	}
	return ""
}
