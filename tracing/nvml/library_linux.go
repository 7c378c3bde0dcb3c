//go:build cgo && linux && !nonvml

package nvml

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"kvbench/tracing/host"
)

// start loads the library and starts it, once per process. A call of a function that the library lacks would
// end the process, so they are looked up first.
var start = sync.OnceValue(func() error {
	library := dl.New("libnvidia-ml.so.1", dl.RTLD_NOW)
	err := library.Open()
	for _, name := range []string{"Init_v2", "ErrorString", "SystemGetDriverVersion", "DeviceGetCount_v2",
		"DeviceGetHandleByIndex_v2", "DeviceGetName", "DeviceGetUUID", "DeviceGetMemoryInfo", "DeviceGetPciInfo_v3",
		"DeviceGetCurrPcieLinkGeneration", "DeviceGetMaxPcieLinkGeneration", "DeviceGetCurrPcieLinkWidth",
		"DeviceGetMaxPcieLinkWidth", "DeviceGetFieldValues"} {
		if err == nil {
			err = library.Lookup("nvml" + name)
		}
	}
	if err == nil {
		if code := nvml.Init(); code != nvml.SUCCESS {
			err = code
		}
	}
	if err != nil {
		return fmt.Errorf("NVML: %w; libnvidia-ml.so.1 comes with the NVIDIA driver", err)
	}
	return nil
})

// Cards returns the cards of this machine. What the library refuses remains empty.
func Cards() (list []Card, err error) {
	if err := start(); err != nil {
		return nil, err
	}
	count, _ := nvml.DeviceGetCount()
	for i := range count {
		card := Card{Address: "0000:00:00.0", Source: "NVML"}
		if c, code := nvml.DeviceGetHandleByIndex(i); code == nvml.SUCCESS {
			describe(c, &card)
		}
		list = append(list, card)
	}
	return list, nil
}

func describe(c nvml.Device, card *Card) {
	card.Name, _ = c.GetName()
	card.UUID, _ = c.GetUUID()
	card.Driver, _ = nvml.SystemGetDriverVersion()
	if m, code := c.GetMemoryInfo(); code == nvml.SUCCESS && m.Total > 0 {
		card.MemoryBytes, card.UsedBytes = new(int64(m.Total)), new(int64(m.Used))
	}
	if p, code := c.GetPciInfo(); code == nvml.SUCCESS {
		card.Address = fmt.Sprintf("%04x:%02x:%02x.0", p.Domain, p.Bus, p.Device)
	}
	generation, _ := c.GetCurrPcieLinkGeneration()
	width, _ := c.GetCurrPcieLinkWidth()
	if generation > 0 && width > 0 {
		card.Link = &host.Link{Address: card.Address, Generation: generation, Width: width}
		card.Link.MaxGeneration, _ = c.GetMaxPcieLinkGeneration()
		card.Link.MaxWidth, _ = c.GetMaxPcieLinkWidth()
	}
	card.ReceivedBytes = counter(c, nvml.FI_DEV_PCIE_COUNT_RX_BYTES)
	card.SentBytes = counter(c, nvml.FI_DEV_PCIE_COUNT_TX_BYTES)
}

// counter returns a counter, nil if the card has none, or one of 32 bits, which overflows within a second.
func counter(c nvml.Device, id uint32) *int64 {
	f := []nvml.FieldValue{{FieldId: id}}
	code, t := c.GetFieldValues(f), nvml.ValueType(f[0].ValueType)
	if code != nvml.SUCCESS || f[0].NvmlReturn != 0 ||
		t != nvml.VALUE_TYPE_UNSIGNED_LONG && t != nvml.VALUE_TYPE_UNSIGNED_LONG_LONG {
		return nil
	}
	return new(int64(binary.NativeEndian.Uint64(f[0].Value[:])))
}
