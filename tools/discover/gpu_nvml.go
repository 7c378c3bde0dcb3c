//go:build nvml && cgo && linux

package discover

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlGPUs asks the driver's library, which is loaded at run time.
func nvmlGPUs() (list []GPU, note string) {
	if ret := nvml.Init(); ret != nvml.SUCCESS {
		return nil, fmt.Sprintf("NVML: %s: libnvidia-ml.so.1 comes with the NVIDIA driver",
			nvml.ErrorString(ret))
	}
	defer func() { _ = nvml.Shutdown() }()
	count, ret := nvml.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, "NVML: counting the cards: " + nvml.ErrorString(ret)
	}
	for i := range count {
		device, ret := nvml.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			note = fmt.Sprintf("NVML: card %d: %s", i, nvml.ErrorString(ret))
			continue
		}
		list = append(list, nvmlGPU(i, device))
	}
	return list, note
}

// nvmlGPU reads one card; what the driver does not tell is unknown.
func nvmlGPU(index int, d nvml.Device) GPU {
	g := GPU{Index: index, Source: "nvml"}
	if name, ret := d.GetName(); ret == nvml.SUCCESS {
		g.Name = name
	}
	if uuid, ret := d.GetUUID(); ret == nvml.SUCCESS {
		g.UUID = uuid
	}
	if memory, ret := d.GetMemoryInfo(); ret == nvml.SUCCESS {
		g.MemoryBytes = new(int64(memory.Total))
	}
	link := Link{}
	if pci, ret := d.GetPciInfo(); ret == nvml.SUCCESS {
		link.Address = fmt.Sprintf("%04x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)
	}
	number := func(ask func() (int, nvml.Return)) int {
		if n, ret := ask(); ret == nvml.SUCCESS {
			return n
		}
		return 0
	}
	link.Generation, link.Width = number(d.GetCurrPcieLinkGeneration),
		number(d.GetCurrPcieLinkWidth)
	link.MaxGeneration, link.MaxWidth = number(d.GetMaxPcieLinkGeneration),
		number(d.GetMaxPcieLinkWidth)
	if link.Generation > 0 && link.Generation <= len(rates) {
		link.Speed = fmt.Sprintf("%.1f GT/s PCIe", rates[link.Generation-1])
	}
	g.Link = &link
	return g
}
