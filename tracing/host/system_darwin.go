package host

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// noKernelStatistics makes BackingDevice return without a query: only Linux has /sys/block.
const noKernelStatistics = "darwin has no /sys/block: the kernel's byte counts are a Linux feature"

// identify and blockNode are never called here.
func identify(string) (identity, error) { return identity{}, errors.ErrUnsupported }

func blockNode(string) (major, minor uint32, err error) { return 0, 0, errors.ErrUnsupported }

func (machine) mounts() ([]Mount, error) { return nil, errors.ErrUnsupported }

// ReadStat is available only on Linux.
func (Disk) ReadStat() (BlockStat, error) { return BlockStat{}, errors.ErrUnsupported }

func statfs(path string) (Filesystem, error) {
	var s unix.Statfs_t
	if err := uninterrupted(func() error { return unix.Statfs(path, &s) }); err != nil {
		return Filesystem{}, err
	}
	return Filesystem{
		Type:  unix.ByteSliceToString(s.Fstypename[:]),
		Free:  int64(s.Bavail) * int64(s.Bsize),
		Total: int64(s.Blocks) * int64(s.Bsize),
		Root:  unix.ByteSliceToString(s.Mntonname[:]) == "/",

		source: unix.ByteSliceToString(s.Mntfromname[:]),
	}, nil
}

// allowedCPUs: macOS has no affinity masks.
func allowedCPUs() int { return 0 }

// SystemFacts returns facts that macOS has in sysctl instead of /proc.
func SystemFacts() (kernel, cpu string, memory int64) {
	kernel, _ = unix.Sysctl("kern.osrelease")
	cpu, _ = unix.Sysctl("machdep.cpu.brand_string")
	bytes, _ := unix.SysctlUint64("hw.memsize")
	return kernel, cpu, int64(bytes)
}

// ResetPeakRSS is not possible here: PeakRSS counts from the start of the process.
func ResetPeakRSS() error {
	return fmt.Errorf("reset the peak memory of this process: %w", errors.ErrUnsupported)
}

// peakRSS: macOS counts it in bytes.
func peakRSS(maxrss int64) int64 { return maxrss }
