package discover

import "kvbench/kvbench/result"

// SchemaVersion of the JSON. Readers accept any 1.x.
const SchemaVersion = "1.0"

// Hardware is the description of a machine. Unknown texts are empty and left out of the JSON,
// unknown numbers are null. kvreport submission reads the schema, and users keep descriptions of
// machines next to results: keys are added and never renamed.
type Hardware struct {
	SchemaVersion string `json:"schema_version"`
	Hostname      string `json:"hostname"`
	OS            string `json:"os"`
	Kernel        string `json:"kernel"`
	Arch          string `json:"arch"`

	CPU    CPU    `json:"cpu"`
	Memory Memory `json:"memory"`
	GPUs   []GPU  `json:"gpus"`
	// why there are none, or why not all of them is known
	GPUNote   string           `json:"gpu_note,omitempty"`
	Devices   []Device         `json:"block_devices"`
	Directory *Directory       `json:"directory"`
	Tracing   Tracing          `json:"tracing"`
	Advice    []Recommendation `json:"recommended"`
}

// CPU is the processors. Threads are what the kernel schedules on; AllowedCores is what a
// container leaves of them.
type CPU struct {
	Model          string  `json:"model"`
	Sockets        *int    `json:"sockets"`
	Cores          *int    `json:"cores"`   // physical
	Threads        int     `json:"threads"` // logical
	NUMA           []Node  `json:"numa_nodes"`
	Governor       string  `json:"governor,omitempty"`
	Virtual        bool    `json:"virtual_machine"`
	AllowedCores   float64 `json:"allowed_cores"` // affinity and cgroup included
	AllowedBecause string  `json:"allowed_cores_source"`
}

// Node is a NUMA node.
type Node struct {
	ID          int    `json:"id"`
	CPUs        string `json:"cpus"`
	MemoryBytes *int64 `json:"memory_bytes"`
}

// Memory is the main memory. Available is what a run may count on; a limit of a container counts,
// whatever the machine has.
type Memory struct {
	TotalBytes       int64  `json:"total_bytes"`
	AvailableBytes   int64  `json:"available_bytes"` // cgroup limits included
	AvailableBecause string `json:"available_source"`
	HugePages        string `json:"transparent_hugepage,omitempty"`
	HugePagePool     *int64 `json:"nr_hugepages"`
}

// Link is a PCIe link. Speed and width are those that were negotiated, the others what both ends
// could.
type Link struct {
	Address       string `json:"address"`
	Speed         string `json:"speed"` // as the kernel writes it: 16.0 GT/s PCIe
	Generation    int    `json:"generation"`
	Width         int    `json:"width"`
	MaxGeneration int    `json:"max_generation"`
	MaxWidth      int    `json:"max_width"`
	NUMANode      *int64 `json:"numa_node"`
}

// GPU is one card. Only NVIDIA's are looked for.
type GPU struct {
	Index       int    `json:"index"`
	Name        string `json:"name"`
	UUID        string `json:"uuid,omitempty"`
	MemoryBytes *int64 `json:"memory_bytes"`
	Link        *Link  `json:"pcie"`
	Source      string `json:"source"` // nvidia-smi, or where else it was found
	address     string // on the PCI bus
}

// Device is a whole block device.
type Device struct {
	result.Device
	Link *Link `json:"pcie"`
	NVMe *NVMe `json:"nvme"`
}

// NVMe is what the controller says of itself, as the kernel keeps it.
type NVMe struct {
	Controller string `json:"controller"`
	Model      string `json:"model"`
	Serial     string `json:"serial,omitempty"`
	Firmware   string `json:"firmware"`
	Transport  string `json:"transport"`
	Queues     *int64 `json:"queue_count"`
	State      string `json:"state,omitempty"`
	Subsystem  string `json:"subsystem_nqn,omitempty"`
}

// Directory is where the storage tier would be. What decides how a run must be made is here as
// flags, so that readers need no list of filesystem types.
type Directory struct {
	Path         string            `json:"path"`
	Filesystem   result.Filesystem `json:"filesystem"`
	TotalBytes   int64             `json:"total_bytes"`
	FreeBytes    int64             `json:"free_bytes"`
	Root         bool              `json:"root_filesystem"`
	Network      bool              `json:"network"`
	InMemory     bool              `json:"in_memory"`
	Device       string            `json:"device,omitempty"`
	DeviceReason string            `json:"device_reason,omitempty"`
}

// Tracing is what block-layer tracing would find. Possible was tried; the features are what can be
// seen of the reasons.
type Tracing struct {
	Possible bool      `json:"possible"`
	Verdict  string    `json:"verdict"`
	Features []Feature `json:"features"`
}

// Feature is one thing that tracing needs or likes.
type Feature struct {
	Name   string `json:"name"`
	There  bool   `json:"there"`
	Detail string `json:"detail"`
}

// Recommendation is a parameter or a setting of the system, and why. The reason has the numbers,
// so that it can be doubted.
type Recommendation struct {
	What   string `json:"what"` // a flag with its value, or a command
	Reason string `json:"reason"`
}
