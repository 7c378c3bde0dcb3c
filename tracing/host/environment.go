package host

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Environment describes the machine and the directory of a run: what a reader needs to judge
// whether two results may be compared. Unknown strings are empty and left out of the JSON, unknown
// numbers are null.
type Environment struct {
	Hostname string `json:"hostname"`
	OS       string `json:"os"` // distribution where known, else GOOS
	Kernel   string `json:"kernel"`
	Arch     string `json:"arch"`
	CPUModel string `json:"cpu_model"`
	// Cores are the machine's logical CPUs, whatever this process may use of them (Limits).
	Cores       int    `json:"cores"`
	CPUGovernor string `json:"cpu_governor,omitempty"`
	MemoryBytes int64  `json:"memory_bytes"`
	GoVersion   string `json:"go_version"`
	Version     string `json:"kvbench_version"`
	GOMAXPROCS  int    `json:"gomaxprocs"`
	HugePages   string `json:"transparent_hugepage,omitempty"` // always, madvise or never
	// HugePagePool is what is reserved, which fio's iomem=mmaphuge needs.
	HugePagePool *int64 `json:"nr_hugepages"`

	Filesystem FilesystemEnvironment `json:"filesystem"`
	// Device is null when no block device is behind the directory. DeviceReason says why, or why
	// its counters say nothing.
	Device       *DeviceEnvironment `json:"device"`
	DeviceReason string             `json:"device_reason,omitempty"`
}

// FilesystemEnvironment is the mount that holds the cache directory.
type FilesystemEnvironment struct {
	Type         string   `json:"type,omitempty"`
	MountPoint   string   `json:"mount_point,omitempty"`
	Source       string   `json:"source,omitempty"`
	Options      []string `json:"mount_options,omitempty"`
	SuperOptions []string `json:"super_options,omitempty"`

	// The largest transfers of a network mount (rsize, wsize), nil where there are none.
	ReadSizeBytes  *int64 `json:"read_size_bytes,omitempty"`
	WriteSizeBytes *int64 `json:"write_size_bytes,omitempty"`
}

// DeviceEnvironment is the whole block device below that filesystem.
type DeviceEnvironment struct {
	Name        string              `json:"name"`
	Partition   string              `json:"partition,omitempty"`
	Model       string              `json:"model,omitempty"`
	Firmware    string              `json:"firmware,omitempty"`
	SizeBytes   *int64              `json:"size_bytes"`
	Rotational  *bool               `json:"rotational"`
	Queue       QueueEnvironment    `json:"queue"`
	Members     []DeviceEnvironment `json:"members,omitempty"` // of dm, md and multipath devices
	BackingFile string              `json:"backing_file,omitempty"`
	Note        string              `json:"note,omitempty"`
}

// QueueEnvironment holds the limits of the device's request queue. max_segments × page size bounds
// a request from ordinary pages, which is why huge pages matter; max_sectors_kb bounds all.
type QueueEnvironment struct {
	Scheduler         string `json:"scheduler,omitempty"`
	WriteCache        string `json:"write_cache,omitempty"`
	LogicalBlockSize  *int64 `json:"logical_block_size"`
	PhysicalBlockSize *int64 `json:"physical_block_size"`
	MaxSegments       *int64 `json:"max_segments"`
	MaxSegmentSize    *int64 `json:"max_segment_size"`
	MaxSectorsKB      *int64 `json:"max_sectors_kb"`
	MaxHWSectorsKB    *int64 `json:"max_hw_sectors_kb"`
	Requests          *int64 `json:"nr_requests"`
	ReadAheadKB       *int64 `json:"read_ahead_kb"`
}

// ReadEnvironment describes this machine and the directory dir, which should exist. It never fails:
// what cannot be read is unknown.
func ReadEnvironment(dir string) Environment {
	m := thisMachine()
	e := m.environment()
	e.Hostname, _ = os.Hostname()
	systemEnvironment(&e)
	d, err := BackingDevice(dir)
	if err != nil {
		e.DeviceReason = err.Error()
		return e
	}
	m.addDevice(&e, d)
	return e
}

// environment reads what /proc and /sys tell about the machine.
func (m machine) environment() Environment {
	return Environment{
		OS:     cmp.Or(m.Field("PRETTY_NAME", "/etc/os-release"), runtime.GOOS),
		Kernel: m.Text("/proc/sys/kernel/osrelease"), Arch: runtime.GOARCH,
		CPUModel: m.cpuModel(), Cores: runtime.NumCPU(),
		CPUGovernor: m.Text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
		MemoryBytes: m.KiB("MemTotal", "/proc/meminfo"),
		GoVersion:   runtime.Version(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		HugePages:    Chosen(m.Text("/sys/kernel/mm/transparent_hugepage/enabled")),
		HugePagePool: m.Integer("/proc/sys/vm/nr_hugepages"),
	}
}

// addDevice describes the device and the mount.
func (m machine) addDevice(e *Environment, d Device) {
	e.Filesystem = FilesystemEnvironment{
		Type: d.Filesystem, MountPoint: d.Mount.Point, Source: d.Mount.Source,
		Options: d.Mount.Options, SuperOptions: d.Mount.SuperOptions,
	}
	if read, write, ok := d.Mount.TransferSizes(); ok {
		e.Filesystem.ReadSizeBytes, e.Filesystem.WriteSizeBytes = &read, &write
	}
	e.DeviceReason = d.Reason
	if d.Name == "" {
		return
	}
	dev := ReadBlockDevice(d.SysPath)
	dev.Partition, dev.BackingFile, dev.Note = d.Partition, d.BackingFile, d.Note
	for _, name := range d.Members {
		// A slave's link leads to where it really is, and so does that of the class for the hidden
		// paths of a multipath head. Members may be partitions: their disk is described.
		disk, partition, err := m.wholeDisk(filepath.Join(d.SysPath, "slaves", name))
		if err != nil {
			disk, partition, err = m.diskNamed(name)
		}
		if err == nil {
			member := ReadBlockDevice(disk.SysPath)
			member.Partition = partition
			dev.Members = append(dev.Members, member)
		}
	}
	e.Device = &dev
}

// ReadBlockDevice describes the whole device whose directory in sysfs is dir (/sys/block/nvme0n1,
// links resolved). It never fails: what cannot be read is unknown.
func ReadBlockDevice(dir string) DeviceEnvironment {
	at := Root(dir)
	d := DeviceEnvironment{
		Name:     filepath.Base(dir),
		Firmware: cmp.Or(at.Text("device/firmware_rev"), at.Text("device/rev")), // NVMe, SCSI
		Queue: QueueEnvironment{
			Scheduler: Chosen(at.Text("queue/scheduler")), WriteCache: at.Text("queue/write_cache"),
			LogicalBlockSize:  at.Integer("queue/logical_block_size"),
			PhysicalBlockSize: at.Integer("queue/physical_block_size"),
			MaxSegments:       at.Integer("queue/max_segments"),
			MaxSegmentSize:    at.Integer("queue/max_segment_size"),
			MaxSectorsKB:      at.Integer("queue/max_sectors_kb"),
			MaxHWSectorsKB:    at.Integer("queue/max_hw_sectors_kb"),
			Requests:          at.Integer("queue/nr_requests"),
			ReadAheadKB:       at.Integer("queue/read_ahead_kb"),
		},
	}
	if model := at.Text("device/model"); model != "" {
		// virtio has no model, only a vendor number of PCI, which names nothing.
		d.Model = strings.TrimSpace(at.Text("device/vendor") + " " + model)
	}
	if sectors := at.Integer("size"); sectors != nil {
		d.SizeBytes = new(*sectors * SectorSize)
	}
	if r := at.Integer("queue/rotational"); r != nil {
		d.Rotational = new(*r != 0)
	}
	return d
}

// cpuModel finds the processor's name. arm64 kernels give only numbers (implementer and part),
// which are printed as they are: lists of their names go out of date.
func (m machine) cpuModel() string {
	field := func(name string) string { return m.Field(name, "/proc/cpuinfo") }
	name, part := field("model name"), field("CPU part")
	if name == "" && part != "" {
		name = "ARM implementer " + field("CPU implementer") + " part " + part
	}
	return name
}
