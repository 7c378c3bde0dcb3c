package discover

import (
	"path/filepath"
	"strings"
)

// gpus asks NVML, and where that is not there takes what the kernel shows of NVIDIA cards: their
// names need the driver, their memory needs NVML.
func (m machine) gpus() (list []GPU, note string) {
	list, note = m.nvml()
	for i := range list {
		// NVML writes addresses in capitals.
		if address := strings.ToLower(list[i].address()); address != "" {
			if l := linkAt(m.Path("/sys/bus/pci/devices/" + address)); l != nil {
				list[i].Link.NUMANode = l.NUMANode
			}
		}
	}
	if len(list) > 0 {
		return list, note
	}
	list = m.kernelGPUs()
	// Without a card the lack of NVML is no news.
	if len(list) == 0 {
		if note == "" || !linux() {
			return []GPU{}, note
		}
		return []GPU{}, "no NVIDIA card is on the PCI bus"
	}
	return list, note
}

// address is the card's place on the PCI bus, empty where NVML does not tell it.
func (g GPU) address() string {
	if g.Link == nil {
		return ""
	}
	return g.Link.Address
}

// What the PCI bus says of a card: its vendor and its class, in hexadecimal.
const (
	nvidiaVendor = "0x10de"
	displayClass = "0x03" // VGA and 3D controllers
)

// kernelGPUs finds NVIDIA's display controllers on the PCI bus.
func (m machine) kernelGPUs() []GPU {
	var list []GPU
	for _, address := range m.Names("/sys/bus/pci/devices") {
		dir, err := filepath.EvalSymlinks(m.Path("/sys/bus/pci/devices/" + address))
		if err != nil || found.Text(dir, "vendor") != nvidiaVendor ||
			!strings.HasPrefix(found.Text(dir, "class"), displayClass) {
			continue
		}
		g := GPU{Index: len(list), Name: "NVIDIA device " + found.Text(dir, "device"),
			Link: linkAt(dir), Source: "PCI bus"}
		// The driver knows the name of the card; without it the bus has a number.
		for line := range strings.Lines(
			m.Text("/proc/driver/nvidia/gpus/" + address + "/information")) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "Model" {
				g.Name, g.Source = strings.TrimSpace(value), "/proc/driver/nvidia"
			}
		}
		list = append(list, g)
	}
	return list
}
