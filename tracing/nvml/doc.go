// Package nvml describes NVIDIA cards, as their driver knows them.
//
//	library_linux.go  the driver's library NVML by go-nvml, which builds with cgo load when they use it
//	program_other.go  other builds, such as static ones or -tags nonvml: the program nvidia-smi, which knows less
package nvml

import "kvbench/tracing/host"

// Card is a card. Unknown texts are empty, unknown numbers are nil.
type Card struct {
	Name        string
	UUID        string
	Driver      string // version
	Address     string // on the PCI bus, as sysfs writes it: 0000:81:00.0
	MemoryBytes *int64
	UsedBytes   *int64 // by all processes
	Link        *host.Link
	// The bytes that the card has received and sent over PCIe since its driver began to count.
	ReceivedBytes, SentBytes *int64
	Source                   string // NVML or nvidia-smi
}
