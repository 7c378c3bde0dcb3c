package host

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Environment describes the machine and the directory of a run: what a reader needs to judge whether two results may be
// compared. Unknown strings are empty and left out of the JSON, unknown numbers are null.
type Environment struct {
	Hostname     string `json:"hostname"`
	OS           string `json:"os"` // distribution where known, else GOOS
	Kernel       string `json:"kernel"`
	Arch         string `json:"arch"`
	CPUModel     string `json:"cpu_model"`
	Cores        int    `json:"cores"` // logical CPUs of the machine, whatever this process may use of them
	CPUGovernor  string `json:"cpu_governor,omitempty"`
	MemoryBytes  int64  `json:"memory_bytes"`
	GoVersion    string `json:"go_version"`
	Version      string `json:"kvbench_version"`
	GOMAXPROCS   int    `json:"gomaxprocs"`
	HugePages    string `json:"transparent_hugepage,omitempty"` // always, madvise or never
	HugePagePool *int64 `json:"nr_hugepages"`                   // the reserved pool, which fio's iomem=mmaphuge needs

	Filesystem   FilesystemEnvironment `json:"filesystem"`
	Device       *DeviceEnvironment    `json:"device"`                  // null when no block device is behind the directory
	DeviceReason string                `json:"device_reason,omitempty"` // why, or why its counters say nothing
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

// QueueEnvironment holds the limits of the device's request queue. max_segments × page size bounds a request from
// ordinary pages, which is why huge pages matter; max_sectors_kb bounds all.
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

// ReadEnvironment describes this machine and the directory dir, which should exist. It never fails: what cannot be read
// is unknown.
func ReadEnvironment(dir string) Environment {
	e := machine{}.environment()
	e.Hostname, _ = os.Hostname()
	systemEnvironment(&e)
	d, err := BackingDevice(dir)
	if err != nil {
		e.DeviceReason = err.Error()
		return e
	}
	e.addDevice(d)
	return e
}

// environment reads what /proc and /sys tell about the machine.
func (m machine) environment() Environment {
	meminfo, _ := m.read("/proc/meminfo")
	cpuinfo, _ := m.read("/proc/cpuinfo")
	return Environment{
		OS: m.distribution(), Kernel: m.text("/proc/sys/kernel/osrelease"), Arch: runtime.GOARCH,
		CPUModel: cpuModel(cpuinfo), Cores: runtime.NumCPU(),
		CPUGovernor: m.text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
		MemoryBytes: kibField(meminfo, "MemTotal:"), GoVersion: runtime.Version(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		HugePages:    chosen(m.text("/sys/kernel/mm/transparent_hugepage/enabled")),
		HugePagePool: m.integer("/proc/sys/vm/nr_hugepages"),
	}
}

// addDevice describes the device and the mount.
func (e *Environment) addDevice(d Device) {
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
		// /sys/dev/block and /sys/class/block link to where devices really are; so do slaves/ entries.
		if dir, err := filepath.EvalSymlinks(filepath.Join(d.SysPath, "slaves", name)); err == nil {
			dev.Members = append(dev.Members, member(dir))
		} else if dir, err := filepath.EvalSymlinks(filepath.Join("/sys/class/block", name)); err == nil {
			dev.Members = append(dev.Members, member(dir))
		}
	}
	e.Device = &dev
}

// member describes the disk below a member, which may be a partition.
func member(dir string) DeviceEnvironment {
	if _, err := os.Stat(filepath.Join(dir, "partition")); err == nil {
		d := ReadBlockDevice(filepath.Dir(dir))
		d.Partition = filepath.Base(dir)
		return d
	}
	return ReadBlockDevice(dir)
}

// ReadBlockDevice describes the whole device whose directory in sysfs is dir (/sys/block/nvme0n1, links resolved). It never
// fails: what cannot be read is unknown.
func ReadBlockDevice(dir string) DeviceEnvironment {
	at := machine{root: dir}
	d := DeviceEnvironment{
		Name:     filepath.Base(dir),
		Model:    strings.TrimSpace(at.text("device/vendor") + " " + at.text("device/model")),
		Firmware: at.text("device/firmware_rev"),
		Queue: QueueEnvironment{
			Scheduler: chosen(at.text("queue/scheduler")), WriteCache: at.text("queue/write_cache"),
			LogicalBlockSize: at.integer("queue/logical_block_size"), PhysicalBlockSize: at.integer("queue/physical_block_size"),
			MaxSegments: at.integer("queue/max_segments"), MaxSegmentSize: at.integer("queue/max_segment_size"),
			MaxSectorsKB: at.integer("queue/max_sectors_kb"), MaxHWSectorsKB: at.integer("queue/max_hw_sectors_kb"),
			Requests: at.integer("queue/nr_requests"), ReadAheadKB: at.integer("queue/read_ahead_kb"),
		},
	}
	if at.text("device/model") == "" {
		d.Model = "" // virtio has only a PCI vendor number, which names nothing
	}
	if d.Firmware == "" {
		d.Firmware = at.text("device/rev") // SCSI
	}
	if sectors := at.integer("size"); sectors != nil {
		bytes := *sectors * SectorSize
		d.SizeBytes = &bytes
	}
	if r := at.integer("queue/rotational"); r != nil {
		spins := *r != 0
		d.Rotational = &spins
	}
	return d
}

// text reads a one-line file, "" when there is none.
func (m machine) text(file string) string {
	text, _ := m.read(file)
	return strings.TrimSpace(text)
}

// integer reads a file with one number, nil when there is none.
func (m machine) integer(file string) *int64 {
	n, err := strconv.ParseInt(m.text(file), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// chosen picks the bracketed word of a sysfs choice ("always [madvise] never"); a single word is itself.
func chosen(s string) string {
	if _, rest, ok := strings.Cut(s, "["); ok {
		word, _, _ := strings.Cut(rest, "]")
		return word
	}
	return s
}

// distribution is the system's own name for itself.
func (m machine) distribution() string {
	text, _ := m.read("/etc/os-release")
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(strings.TrimSpace(name), `"'`)
		}
	}
	return runtime.GOOS
}

// cpuModel finds the processor's name. arm64 kernels give only numbers (implementer and part), which are printed as
// they are: lists of their names go out of date.
func cpuModel(cpuinfo string) string {
	field := func(name string) string {
		for line := range strings.Lines(cpuinfo) {
			key, value, _ := strings.Cut(line, ":")
			if strings.TrimSpace(key) == name {
				return strings.TrimSpace(value)
			}
		}
		return ""
	}
	if name := field("model name"); name != "" {
		return name
	}
	if part := field("CPU part"); part != "" {
		return "ARM implementer " + field("CPU implementer") + " part " + part
	}
	return ""
}
