package discover

import (
	_ "embed"
	"fmt"
	"strings"
	"text/tabwriter"
	"text/template"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tracing/host"
)

// SchemaVersion of the JSON. Readers accept any 1.x.
const SchemaVersion = "1.0"

// Hardware is the description of a machine. The JSON omits unknown strings and has null for unknown
// numbers. Users keep descriptions with results, so keys may be added but never renamed.
type Hardware struct {
	SchemaVersion string `json:"schema_version"`
	Hostname      string `json:"hostname"`
	OS            string `json:"os"`
	Kernel        string `json:"kernel"`
	Arch          string `json:"arch"`

	CPU    CPU    `json:"cpu"`
	Memory Memory `json:"memory"`
	GPUs   []GPU  `json:"gpus"`
	// Why GPUs are missing, or their memory is unknown.
	GPUNote   string           `json:"gpu_note,omitempty"`
	Devices   []Device         `json:"block_devices"`
	Directory *Directory       `json:"directory"`
	Tracing   Tracing          `json:"tracing"`
	Advice    []Recommendation `json:"recommended"`
}

// CPU describes the processors. AllowedCores is the number of logical CPUs that this process may use.
type CPU struct {
	Model          string  `json:"model"`
	Sockets        *int    `json:"sockets"`
	Cores          *int    `json:"cores"`   // physical cores
	Threads        int     `json:"threads"` // logical CPUs
	NUMA           []Node  `json:"numa_nodes"`
	Governor       string  `json:"governor,omitempty"`
	Virtual        bool    `json:"virtual_machine"`
	AllowedCores   float64 `json:"allowed_cores"` // after affinity and the cgroup limit
	AllowedBecause string  `json:"allowed_cores_source"`
}

// Node is a NUMA node.
type Node struct {
	ID          int    `json:"id"`
	CPUs        string `json:"cpus"`
	MemoryBytes *int64 `json:"memory_bytes"`
}

// Memory describes the main memory. AvailableBytes is what a run may use; a container's limit counts.
type Memory struct {
	TotalBytes       int64  `json:"total_bytes"`
	AvailableBytes   int64  `json:"available_bytes"` // after the cgroup limit
	AvailableBecause string `json:"available_source"`
	HugePages        string `json:"transparent_hugepage,omitempty"`
	HugePagePool     *int64 `json:"nr_hugepages"`
}

// GPU is one NVIDIA GPU.
type GPU struct {
	Index       int        `json:"index"`
	Name        string     `json:"name"`
	UUID        string     `json:"uuid,omitempty"`
	MemoryBytes *int64     `json:"memory_bytes"`
	Link        *host.Link `json:"pcie"`
	Driver      string     `json:"driver,omitempty"`
	Source      string     `json:"source"` // NVML, nvidia-smi, /proc/driver/nvidia or PCI bus
	address     string     // PCI address
}

// Device is a whole block device.
type Device struct {
	result.Device
	Link *host.Link `json:"pcie"`
	NVMe *NVMe      `json:"nvme"`
}

// NVMe describes an NVMe controller, from sysfs.
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

// Directory describes the directory of the storage tier. Its flags decide how a run must be configured,
// so that readers need no list of filesystem types.
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

// Tracing says whether block-layer tracing works, by a trial.
type Tracing struct {
	Possible bool   `json:"possible"`
	Verdict  string `json:"verdict"` // with the reason
}

// Recommendation is a parameter or a system setting, with the reason and its numbers.
type Recommendation struct {
	What   string `json:"what"` // a flag with its value, or a command
	Reason string `json:"reason"`
}

//go:embed text.tmpl
var text string

var textTemplate = template.Must(template.New("text").Funcs(template.FuncMap{
	"size": size, "bytes": units.Bytes.Text, "join": strings.Join, "spin": spin,
}).Parse(text))

// Text is the description as text, one fact per line, so that diff can compare two machines.
func (h Hardware) Text() string {
	var out strings.Builder
	tab := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_ = textTemplate.Execute(tab, h) // into memory; TestServer executes the whole template
	_ = tab.Flush()
	return out.String()
}

// Limited reports whether this process may use fewer logical CPUs than the machine has.
func (c CPU) Limited() bool { return c.AllowedCores < float64(c.Threads) }

// spin returns the words for whether a drive rotates, "" if unknown.
func spin(rotational *bool) string {
	if rotational == nil {
		return ""
	}
	return map[bool]string{true: ", rotating", false: ", not rotating"}[*rotational]
}

// Limits returns the known limits of the device's request queue as text.
func (d Device) Limits() string {
	var parts []string
	add := func(known bool, format string, v any) {
		if known {
			parts = append(parts, fmt.Sprintf(format, v))
		}
	}
	q := d.Queue
	add(q.Scheduler != "", "scheduler %s", q.Scheduler)
	add(q.MaxSectorsKB != nil, "at most %d KiB per request", units.OrZero(q.MaxSectorsKB))
	add(q.MaxSegments != nil, "segments %d", units.OrZero(q.MaxSegments))
	add(q.Requests != nil, "requests %d", units.OrZero(q.Requests))
	add(q.LogicalBlockSize != nil, "logical block %d B", units.OrZero(q.LogicalBlockSize))
	add(q.WriteCache != "", "write cache %s", q.WriteCache)
	return strings.Join(parts, ", ")
}

func size(n *int64) string {
	if n == nil {
		return "unknown size"
	}
	return units.Bytes.Text(*n)
}
