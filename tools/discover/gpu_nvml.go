//go:build nvml && cgo && linux

package discover

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlGPUs calls the driver's library, which is loaded at run time.
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

// known returns the driver's value, zero after an error.
func known[T any](v T, ret nvml.Return) (unknown T) {
	if ret != nvml.SUCCESS {
		return unknown
	}
	return v
}

// nvmlGPU reads one card; values that the driver refuses are unknown.
func nvmlGPU(index int, d nvml.Device) GPU {
	link := &Link{
		Generation:    known(d.GetCurrPcieLinkGeneration()),
		Width:         known(d.GetCurrPcieLinkWidth()),
		MaxGeneration: known(d.GetMaxPcieLinkGeneration()),
		MaxWidth:      known(d.GetMaxPcieLinkWidth()),
	}
	if pci, ret := d.GetPciInfo(); ret == nvml.SUCCESS {
		link.Address = fmt.Sprintf("%04x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)
	}
	if link.Generation > 0 && link.Generation <= len(rates) {
		link.Speed = fmt.Sprintf("%.1f GT/s PCIe", rates[link.Generation-1])
	}
	g := GPU{Index: index, Source: "nvml", Name: known(d.GetName()), UUID: known(d.GetUUID()),
		Link: link}
	if memory, ret := d.GetMemoryInfo(); ret == nvml.SUCCESS {
		g.MemoryBytes = new(int64(memory.Total))
	}
	return g
}
