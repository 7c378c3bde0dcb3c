package result

import (
	"fmt"

	"kvbench/kvbench/units"
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
	// logical CPUs of the machine, whatever this process may use of them
	Cores       int    `json:"cores"`
	CPUGovernor string `json:"cpu_governor,omitempty"`
	MemoryBytes int64  `json:"memory_bytes"`
	GoVersion   string `json:"go_version"`
	Version     string `json:"kvbench_version"`
	// of the local time, seconds east of UTC; absent in results older than this key
	UTCOffsetS *int64 `json:"utc_offset_s,omitempty"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	HugePages  string `json:"transparent_hugepage,omitempty"` // always, madvise or never
	// the reserved pool, which fio's iomem=mmaphuge needs
	HugePagePool *int64 `json:"nr_hugepages"`

	Filesystem Filesystem `json:"filesystem"`
	// null when no block device is behind the directory
	Device       *Device `json:"device"`
	DeviceReason string  `json:"device_reason,omitempty"` // why, or why its counters say nothing
}

// Filesystem is the mount that holds the cache directory.
type Filesystem struct {
	Type         string   `json:"type,omitempty"`
	MountPoint   string   `json:"mount_point,omitempty"`
	Source       string   `json:"source,omitempty"`
	Options      []string `json:"mount_options,omitempty"`
	SuperOptions []string `json:"super_options,omitempty"`
	InMemory     bool     `json:"in_memory,omitempty"` // its files lie there: tmpfs, ramfs

	// The largest transfers of a network mount (rsize, wsize), nil where there are none.
	ReadSizeBytes  *int64 `json:"read_size_bytes,omitempty"`
	WriteSizeBytes *int64 `json:"write_size_bytes,omitempty"`
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
	Cores       float64 `json:"cores"` // may be a fraction: a quota of 150 ms per 100 ms is 1.5
	CoresSource string  `json:"cores_source"`
	GOMAXPROCS  int     `json:"gomaxprocs"`

	MemoryLimit       int64  `json:"memory_limit_bytes"` // what may be used in total
	MemoryLimitSource string `json:"memory_limit_source"`
	// MemoryAvailable is what may still be used now, page cache that can be dropped included.
	MemoryAvailable       int64  `json:"memory_available_bytes"`
	MemoryAvailableSource string `json:"memory_available_source"`
}

// readByOthersAbove is from which share on the device has read more than the application and its
// metadata: a tolerance for a kernel that reads ahead or skips holes, no measurement.
const readByOthersAbove = 1.05

// ReadByOthers warns of a device that has read more than was asked of it, "" of any other.
func (w Witness) ReadByOthers() string {
	if w.ReadRatio == nil || *w.ReadRatio <= readByOthersAbove {
		return ""
	}
	return fmt.Sprintf("the device read %s where the application read %s (ratio %s): somebody "+
		"else used it in the window, or the filesystem read more than it was asked for; either "+
		"way it had less for this load", units.Bytes.Text(w.ReadBytes),
		units.Bytes.Text(w.AppReadBytes), units.Number.Text(w.ReadRatio))
}
