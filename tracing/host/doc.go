// Package host reads the facts about the machine that a run needs and a result shows: what lies
// under a directory, what this process may use, what it has used.
//
//	machine.go      /proc and /sys, below a root that tests replace
//	mounts.go       the mount table
//	filesystem.go   one table of filesystem types; space, and why some have no block device
//	device.go       the block device behind a directory
//	disks.go        what lies below a device that is not a plain disk
//	blockstat.go    the counters of a block device
//	limits.go       processors and memory that the machine, affinity and cgroups leave; what this
//	                process may ask of the kernel
//	usage.go        processor time and memory of this process
//	system_*.go     the system calls that differ between platforms
//
// Everything is read from /sys and /proc and needs no privilege. What cannot be read is unknown,
// never a zero that looks like a measurement: it is left out, null, or a sentence that says why.
//
// All results are plain data without descriptors. All functions may be called from any goroutine.
package host
