//go:build linux && (amd64 || arm64)

package tracing

import (
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"kvbench/tracing/bpf"
)

// systemCalls are the followed ones by number, which the two architectures give differently.
var systemCalls = map[int]uint8{
	unix.SYS_READ: callRead, unix.SYS_PREAD64: callRead, unix.SYS_READV: callRead, unix.SYS_PREADV: callRead, unix.SYS_PREADV2: callRead,
	unix.SYS_WRITE: callWrite, unix.SYS_PWRITE64: callWrite, unix.SYS_WRITEV: callWrite, unix.SYS_PWRITEV: callWrite, unix.SYS_PWRITEV2: callWrite,
	unix.SYS_FSYNC: callFsync, unix.SYS_FDATASYNC: callFsync, unix.SYS_FADVISE64: callKinds,
}

// callTable is call_kind of bpf/file.h: the kind + 1.
func callTable() (table [512]uint8) {
	for number, kind := range systemCalls {
		table[number] = kind + 1
	}
	return table
}

// fileDevice is the number of the filesystem as its superblock has it, which for btrfs is not that of its files.
func fileDevice(d Device) uint32 {
	if d.Mount.Point == "" {
		return 0
	}
	return d.Mount.Major<<20 | d.Mount.Minor
}

func (k *kernelProbes) clearCalls() error {
	if k.file == attachNone {
		return nil
	}
	zero := make([]bpf.TraceCalls, ebpf.MustPossibleCPU())
	for kind := range uint32(callKinds) {
		if err := k.coll.Maps[bpf.TraceMapCallCounts].Put(booksInside*callKinds+kind, zero); err != nil {
			return fmt.Errorf("clear the system calls: %w", err)
		}
	}
	return nil
}

func (k *kernelProbes) readCalls(n *counts) error {
	if k.file == attachNone {
		return nil
	}
	for kind := range n.calls {
		var perCPU []bpf.TraceCalls
		if err := k.coll.Maps[bpf.TraceMapCallCounts].Lookup(uint32(booksInside*callKinds+kind), &perCPU); err != nil {
			return err
		}
		for i := range perCPU {
			n.calls[kind].add(&perCPU[i])
		}
	}
	return nil
}

func (c *callCounts) add(from *bpf.TraceCalls) {
	c.calls += from.Calls
	c.errors += from.Errors
	c.bytes += from.Bytes
	c.ns += from.Ns
	addInto(c.time[:], from.Time[:])
	addInto(c.size[:], from.Size[:])
	addInto(c.sizeBytes[:], from.SizeBytes[:])
}
