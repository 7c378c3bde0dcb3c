//go:build !linux

package host

import "runtime"

// noKernelStatistics makes BackingDevice answer without asking: only Linux has /sys/block.
const noKernelStatistics = runtime.GOOS + " has no /sys/block: the kernel's byte counts are a Linux feature"

// thisHost is never asked here.
func thisHost() host { return host{} }
