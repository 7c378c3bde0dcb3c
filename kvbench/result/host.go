package result

import (
	"cmp"
	"fmt"

	"kvbench/kvbench/units"
)

// Environment describes the machine and the directory of a run: what a reader needs to judge
// whether two results may be compared. Unknown strings are empty and left out of the JSON, unknown
// numbers are null.
type Environment struct {
	Hostname string `json:"hostname" merge:"same"`
	// what the kernel calls the time that it runs (Linux), one in all containers of a machine;
	// absent in results older than this key
	BootID   string `json:"boot_id,omitempty" merge:"same"`
	OS       string `json:"os" merge:"same"` // distribution where known, else GOOS
	Kernel   string `json:"kernel" merge:"same"`
	Arch     string `json:"arch" merge:"same"`
	CPUModel string `json:"cpu_model" merge:"same"`
	// logical CPUs of the machine, whatever this process may use of them
	Cores       int    `json:"cores" merge:"same"`
	CPUGovernor string `json:"cpu_governor,omitempty" merge:"same"`
	MemoryBytes int64  `json:"memory_bytes" merge:"same"`
	GoVersion   string `json:"go_version" merge:"same"`
	Version     string `json:"kvbench_version" merge:"same"`
	// of the local time, seconds east of UTC; absent in results older than this key
	UTCOffsetS *int64 `json:"utc_offset_s,omitempty" merge:"same"`
	GOMAXPROCS int    `json:"gomaxprocs" merge:"same"`
	HugePages  string `json:"transparent_hugepage,omitempty" merge:"same"` // always, madvise or never
	// the reserved pool, which fio's iomem=mmaphuge needs
	HugePagePool *int64 `json:"nr_hugepages" merge:"same"`

	// What the directory lies on. Of several it is the first: io.roots has each of them.
	Filesystem Filesystem `json:"filesystem"`
	// null when no block device is behind the directory
	Device       *Device `json:"device" merge:"same"`
	DeviceReason string  `json:"device_reason,omitempty" merge:"same"` // why, or why its counters say nothing
}

// KernelID names the running kernel, whose devices and counters are one for all that it runs:
// containers of one machine have several host names, and clones of one machine have one.
func (e *Environment) KernelID() string { return cmp.Or(e.BootID, e.Hostname) }

// Filesystem is the mount that holds the cache directory.
type Filesystem struct {
	Type         string   `json:"type,omitempty" merge:"same"`
	MountPoint   string   `json:"mount_point,omitempty" merge:"same"`
	Source       string   `json:"source,omitempty" merge:"same"`
	Options      []string `json:"mount_options,omitempty" merge:"same"`
	SuperOptions []string `json:"super_options,omitempty" merge:"same"`
	InMemory     bool     `json:"in_memory,omitempty" merge:"same"` // its files lie there: tmpfs, ramfs

	// The largest transfers of a network mount (rsize, wsize), nil where there are none.
	ReadSizeBytes  *int64 `json:"read_size_bytes,omitempty" merge:"same"`
	WriteSizeBytes *int64 `json:"write_size_bytes,omitempty" merge:"same"`
}

// Device is the whole block device below that filesystem.
type Device struct {
	Name      string `json:"name"`
	Partition string `json:"partition,omitempty"`
	Model     string `json:"model,omitempty"`
	// what leads to it: pcie, tcp, rdma, fc, iscsi, sata, sas, usb, virtio; "" where the kernel
	// does not tell, or several devices make it up
	Transport   string   `json:"transport,omitempty"`
	Firmware    string   `json:"firmware,omitempty"`
	SizeBytes   *int64   `json:"size_bytes"`
	Rotational  *bool    `json:"rotational"`
	Queue       Queue    `json:"queue"`
	Members     []Device `json:"members,omitempty"` // of dm, md and multipath devices
	BackingFile string   `json:"backing_file,omitempty"`
	Note        string   `json:"note,omitempty"`
}

// Queue holds the limits of the device's request queue. max_segments × page size bounds a request
// from ordinary pages, which is why huge pages matter; max_sectors_kb bounds all.
type Queue struct {
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

// Limits is what this process may use of the machine: the tightest of the machine itself, its CPU
// affinity and all cgroups above it. Each value names where it comes from, so that a surprised
// reader knows what to raise. Zero means unknown.
type Limits struct {
	Cores       float64 `json:"cores" merge:"same"` // may be a fraction: a quota of 150 ms per 100 ms is 1.5
	CoresSource string  `json:"cores_source" merge:"same"`
	GOMAXPROCS  int     `json:"gomaxprocs" merge:"same"`

	MemoryLimit       int64  `json:"memory_limit_bytes" merge:"same"` // what may be used in total
	MemoryLimitSource string `json:"memory_limit_source" merge:"same"`
	// MemoryAvailable is what may still be used now, page cache that can be dropped included.
	MemoryAvailable       int64  `json:"memory_available_bytes" merge:"min"`
	MemoryAvailableSource string `json:"memory_available_source" merge:"same"`
}

// readByOthersAbove is from which share on the device has read more than the application and its
// metadata: a tolerance for a kernel that reads ahead or skips holes, no measurement.
const readByOthersAbove = 1.05

// ReadByOthers warns of a device that has read more than the application requested, "" of any
// other.
func (w DeviceCounters) ReadByOthers() string {
	if w.ReadRatio == nil || *w.ReadRatio <= readByOthersAbove {
		return ""
	}
	return fmt.Sprintf("the device read %s where the application read %s (ratio %s): another "+
		"process used it in the window, or the filesystem read more than was requested; this load "+
		"had less of the device", units.Bytes.Text(w.ReadBytes),
		units.Bytes.Text(w.AppReadBytes), units.Number.Text(w.ReadRatio))
}

// IO is how bytes moved. Results that differ in mode, write_device or the workload's decode_reads
// are not comparable.
type IO struct {
	CacheDir            string `json:"cache_dir" merge:"same"` // of several all, by comma
	Mode                string `json:"mode" merge:"same"`
	Engine              string `json:"engine" merge:"same"`        // psync, uring; "" without files
	EngineAbout         string `json:"engine_about" merge:"same"`  // how it works here
	EngineReason        string `json:"engine_reason" merge:"same"` // why it is, or what it lacks
	WriteDevice         string `json:"write_device" merge:"same"`
	ChunkBytes          int    `json:"chunk_bytes" merge:"same"`
	Depth               int    `json:"depth" merge:"same"`
	MaxConcurrentAllocs int    `json:"max_concurrent_allocs" merge:"same"`
	Pool                Pool   `json:"pool" merge:"same"`
	// Roots are the directories where there are several, in the order in which they were given.
	Roots []Root `json:"roots,omitempty" merge:"key=Directory"`
}

// Pool is the buffer pool.
type Pool struct {
	Buffers     int    `json:"buffers"`
	BufferBytes int    `json:"buffer_bytes"`
	HugePages   string `json:"huge_pages"`
	// NUMA says on which nodes the buffers lie: those of the directories' devices; empty where the
	// machine has one, or it is unknown which.
	NUMA   string `json:"numa,omitempty"`
	Covers bool   `json:"covers_workers"`
}

// Root is one of several directories that share the entries of the storage tier by the hash of
// their keys: what it has at the window's end, and what it moved in the window. The sums over all
// roots are the storage tier's.
type Root struct {
	Directory  string `json:"directory" merge:"same"` // as it was given, without the rank's part
	Filesystem string `json:"filesystem" merge:"same"`
	Device     string `json:"device" merge:"same"`
	RoomBytes  int64  `json:"room_bytes" merge:"sum"` // that it may take at most
	Entries    int64  `json:"entries" merge:"sum"`
	UsedBytes  int64  `json:"used_bytes" merge:"sum"`
	// Elsewhere are the entries that it took since the run began because the root of their hash had
	// no capacity left.
	Elsewhere int64       `json:"elsewhere" merge:"sum"`
	Read      RootTraffic `json:"read"`
	Write     RootTraffic `json:"write"`
	// What the kernel counted of the device in the window; null for the reason: roots on one
	// device share its counters.
	DeviceReason     string   `json:"device_reason" merge:"same"`
	DeviceReadBytes  *int64   `json:"device_read_bytes" merge:"drop"`
	DeviceWriteBytes *int64   `json:"device_write_bytes" merge:"drop"`
	DeviceBusyShare  *float64 `json:"device_busy_share" merge:"drop"`
	// The filesystem and the device, as environment has them of a single directory.
	Mount       Filesystem `json:"mount"`
	BlockDevice *Device    `json:"block_device" merge:"same"`
}

// RootTraffic is one direction of a root in the window. A request's time is that at the device.
type RootTraffic struct {
	Bytes          int64    `json:"bytes" merge:"sum"`
	BytesPerSecond *float64 `json:"bytes_per_s" merge:"sum"`
	Requests       int64    `json:"requests" merge:"sum"`
	RequestNS      int64    `json:"request_ns" merge:"sum"` // of all of them together
	MeanRequestNS  *float64 `json:"mean_request_ns" merge:"-"`
	InFlightNS     int64    `json:"in_flight_ns" merge:"sum"`
	MeanInFlight   *float64 `json:"mean_in_flight" merge:"sum"`
}
