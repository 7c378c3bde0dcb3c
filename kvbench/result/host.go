package result

import (
	"cmp"
	"fmt"

	"kvbench/kvbench/units"
	"kvbench/tracing/host"
)

// Environment describes the machine and the directory of a run, so that a reader can judge whether
// two results may be compared. Unknown strings are empty, unknown numbers are null.
type Environment struct {
	Hostname string `json:"hostname" merge:"same"`
	// boot id of the kernel (Linux), the same in all containers of a machine; absent in older
	// results
	BootID   string `json:"boot_id,omitempty" merge:"same"`
	OS       string `json:"os" merge:"same"` // distribution if known, else GOOS
	Kernel   string `json:"kernel" merge:"same"`
	Arch     string `json:"arch" merge:"same"`
	CPUModel string `json:"cpu_model" merge:"same"`
	// logical CPUs of the machine; see Limits for those that this process may use
	Cores       int    `json:"cores" merge:"same"`
	CPUGovernor string `json:"cpu_governor,omitempty" merge:"same"`
	MemoryBytes int64  `json:"memory_bytes" merge:"same"`
	GoVersion   string `json:"go_version" merge:"same"`
	Version     string `json:"kvbench_version" merge:"same"`
	// offset of the local time in seconds east of UTC; absent in older results
	UTCOffsetS *int64 `json:"utc_offset_s,omitempty" merge:"same"`
	GOMAXPROCS int    `json:"gomaxprocs" merge:"same"`
	HugePages  string `json:"transparent_hugepage,omitempty" merge:"same"` // always, madvise or never
	// size of the huge page pool, which fio's iomem=mmaphuge needs
	HugePagePool *int64 `json:"nr_hugepages" merge:"same"`

	// Filesystem of the cache directory. With several directories, of the first; io.roots has all.
	Filesystem Filesystem `json:"filesystem"`
	// null if no block device is behind the directory
	Device       *Device `json:"device" merge:"same"`
	DeviceReason string  `json:"device_reason,omitempty" merge:"same"` // why null, or why not used
}

// KernelID identifies the running kernel: the boot id if known, else the host name. Containers of
// one machine have several host names, and cloned machines may have the same.
func (e *Environment) KernelID() string { return cmp.Or(e.BootID, e.Hostname) }

// Filesystem is the mount that holds the cache directory.
type Filesystem struct {
	Type         string   `json:"type,omitempty" merge:"same"`
	MountPoint   string   `json:"mount_point,omitempty" merge:"same"`
	Source       string   `json:"source,omitempty" merge:"same"`
	Options      []string `json:"mount_options,omitempty" merge:"same"`
	SuperOptions []string `json:"super_options,omitempty" merge:"same"`
	InMemory     bool     `json:"in_memory,omitempty" merge:"same"` // tmpfs, ramfs

	// Maximum transfer sizes of a network mount (rsize, wsize), null for other mounts.
	ReadSizeBytes  *int64 `json:"read_size_bytes,omitempty" merge:"same"`
	WriteSizeBytes *int64 `json:"write_size_bytes,omitempty" merge:"same"`
}

// Device is the whole block device below a filesystem.
type Device struct {
	Name      string `json:"name"`
	Partition string `json:"partition,omitempty"`
	Model     string `json:"model,omitempty"`
	// how it is attached: pcie, tcp, rdma, fc, iscsi, sata, sas, usb, virtio; "" if unknown, or if
	// its paths differ
	Transport   string   `json:"transport,omitempty"`
	Firmware    string   `json:"firmware,omitempty"`
	SizeBytes   *int64   `json:"size_bytes"`
	Rotational  *bool    `json:"rotational"`
	Queue       Queue    `json:"queue"`
	Members     []Device `json:"members,omitempty"` // of dm, md and multipath devices
	BackingFile string   `json:"backing_file,omitempty"`
	Note        string   `json:"note,omitempty"`
}

// Queue has the limits of the device's request queue. max_segments × page size limits a request
// from a buffer of ordinary pages, so huge pages allow larger requests. max_sectors_kb limits every
// request.
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

// Card is a card whose memory is the gpu tier. Unknown numbers are null, or 0 for the link.
type Card struct {
	Name           string `json:"name"`
	Address        string `json:"address"` // on the PCI bus
	CUDA           string `json:"cuda"`    // the newest version that the driver supports
	Driver         string `json:"driver,omitempty"`
	PCIeGeneration int    `json:"pcie_generation"`
	PCIeWidth      int    `json:"pcie_width"`
	MemoryBytes    int64  `json:"memory_bytes"` // the whole memory of the card
	FreeBytes      int64  `json:"free_bytes"`   // of it, before the run
	// what plain copies of 64 MiB from the card to registered memory reach, before the load
	PlainReadBytesPerSecond  float64 `json:"plain_read_bytes_per_s"`
	PlainWriteBytesPerSecond float64 `json:"plain_write_bytes_per_s"` // the same to the card
	UsedBytes                *int64  `json:"used_bytes"`              // at the window's end, by NVML
	// over PCIe in the window, of all processes, by NVML
	ReceivedBytes *int64 `json:"received_bytes"`
	SentBytes     *int64 `json:"sent_bytes"`            // the same in the other direction
	NVMLReason    string `json:"nvml_reason,omitempty"` // why NVML's numbers are unknown
}

// Limits is what this process may use of the machine. Package host has its keys and merge tags.
type Limits = host.Limits

// readByOthersAbove is the read ratio above which ReadByOthers warns. It is a tolerance for
// metadata and read-ahead.
const readByOthersAbove = 1.05

// ReadByOthers returns a warning if the device read more than the application requested, else "".
func (w DeviceCounters) ReadByOthers() string {
	if w.ReadRatio == nil || *w.ReadRatio <= readByOthersAbove {
		return ""
	}
	return fmt.Sprintf("the device read %s where the application read %s (ratio %s): another "+
		"process used it in the window, or the filesystem read more than was requested; this load "+
		"had less of the device", units.Bytes.Text(w.ReadBytes),
		units.Bytes.Text(w.AppReadBytes), units.Number.Text(w.ReadRatio))
}

// IO is how bytes were read and written. Results that differ in mode, write_device or the
// workload's decode_reads are not comparable.
type IO struct {
	CacheDir string `json:"cache_dir" merge:"same"` // several are separated by commas
	Mode     string `json:"mode" merge:"same"`
	// The filesystem accepted direct I/O and made the writes through the page cache: the mode is buffered.
	CachedWrites        bool   `json:"cached_writes,omitempty" merge:"max"`
	Engine              string `json:"engine" merge:"same"`        // psync, uring; "" without files
	EngineAbout         string `json:"engine_about" merge:"same"`  // how it works here
	EngineReason        string `json:"engine_reason" merge:"same"` // why this engine, or what it lacks
	Rings               int    `json:"rings" merge:"same"`         // of io_uring; 0: psync
	WriteDevice         string `json:"write_device" merge:"same"`
	ChunkBytes          int    `json:"chunk_bytes" merge:"same"`
	Depth               int    `json:"depth" merge:"same"`
	MaxConcurrentAllocs int    `json:"max_concurrent_allocs" merge:"same"`
	Pool                Pool   `json:"pool" merge:"same"`
	// Roots are the cache directories, if there are several, in the order of the command line.
	Roots []Root `json:"roots,omitempty" merge:"key=Directory"`
}

// Pool is the buffer pool.
type Pool struct {
	Buffers     int    `json:"buffers"`
	BufferBytes int    `json:"buffer_bytes"`
	HugePages   string `json:"huge_pages"`
	// NUMA is the NUMA nodes of the buffers: the nodes of the directories' devices. Empty if the
	// machine has one node, or the nodes are unknown.
	NUMA   string `json:"numa,omitempty"`
	Covers bool   `json:"covers_workers"`
}

// Root is one of several cache directories. The hash of an entry's key chooses its root. Root has
// the content at the end of the window, and the traffic in the window. The numbers of the storage
// tier are the sums over all roots.
type Root struct {
	Directory  string `json:"directory" merge:"same"` // as given, without the rank's subdirectory
	Filesystem string `json:"filesystem" merge:"same"`
	Device     string `json:"device" merge:"same"`
	RoomBytes  int64  `json:"room_bytes" merge:"sum"` // its capacity
	Entries    int64  `json:"entries" merge:"sum"`
	UsedBytes  int64  `json:"used_bytes" merge:"sum"`
	// Elsewhere is how many entries this root took since the run began because the root of their
	// hash was full.
	Elsewhere int64       `json:"elsewhere" merge:"sum"`
	Read      RootTraffic `json:"read"`
	Write     RootTraffic `json:"write"`
	// The kernel's counters of the device in the window. Null for the reason in device_reason, such
	// as roots that share a device.
	DeviceReason     string   `json:"device_reason" merge:"same"`
	DeviceReadBytes  *int64   `json:"device_read_bytes" merge:"drop"`
	DeviceWriteBytes *int64   `json:"device_write_bytes" merge:"drop"`
	DeviceBusyShare  *float64 `json:"device_busy_share" merge:"drop"`
	// The filesystem and the device, as in environment.
	Mount       Filesystem `json:"mount"`
	BlockDevice *Device    `json:"block_device" merge:"same"`
}

// RootTraffic is one direction of a root's traffic in the window. The time of a request is its time
// at the device.
type RootTraffic struct {
	Bytes          int64    `json:"bytes" merge:"sum"`
	BytesPerSecond *float64 `json:"bytes_per_s" merge:"sum" rate:"Bytes"`
	Requests       int64    `json:"requests" merge:"sum"`
	RequestNS      int64    `json:"request_ns" merge:"sum"` // summed over requests
	MeanRequestNS  *float64 `json:"mean_request_ns" merge:"-" ratio:"RequestNS/Requests"`
	InFlightNS     int64    `json:"in_flight_ns" merge:"sum"`
	MeanInFlight   *float64 `json:"mean_in_flight" merge:"sum" ratio:"InFlightNS"`
}
