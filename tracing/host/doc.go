// Package host reads facts about the machine for runs and results: the storage below a directory, and the
// limits and the usage of this process.
//
//	machine.go      /proc and /sys, below a root that tests replace
//	mounts.go       the mount table
//	filesystem.go   one table of filesystem types; the space of a filesystem; why some types have no block
//	                device
//	device.go       the block device behind a directory
//	disks.go        the disks below a stacked device, and their NUMA nodes
//	blockstat.go    the counters of a block device
//	limits.go       the processors and the memory that the machine, the affinity and the cgroups allow;
//	                the privileges of this process
//	usage.go        processor time and memory of this process
//	system_*.go     the system calls that differ between platforms
//
// On Linux the facts come from /sys, /proc and system calls, on macOS from system calls. They need no
// privilege. A value that cannot be read is never 0: it is missing, null, or a sentence with the reason.
//
// All results are plain data without file descriptors. All functions may be called from any goroutine.
package host
