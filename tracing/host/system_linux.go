package host

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/prometheus/procfs/blockdevice"
	"golang.org/x/sys/unix"

	"kvbench/tracing"
)

// noKernelStatistics is empty: this kernel has statistics.
const noKernelStatistics = ""

// identify uses statx, which also returns the mount id (since Linux 5.8, if the mask says so).
func identify(path string) (identity, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return identity{}, err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return identity{}, err
	}
	var st unix.Statx_t
	err = unix.Statx(unix.AT_FDCWD, abs, 0, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &st)
	if err != nil {
		return identity{}, &fs.PathError{Op: "statx", Path: abs, Err: err}
	}
	id := identity{path: abs, major: st.Dev_major, minor: st.Dev_minor}
	if st.Mask&unix.STATX_MNT_ID != 0 {
		id.mountID = int(st.Mnt_id)
	}
	return id, nil
}

// mounts reads this process's mount table, in the kernel's order: the later of two mounts on one point
// hides the earlier one.
func (m machine) mounts() (mounts []Mount, err error) {
	table, err := os.Open(m.Path("/proc/self/mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	defer table.Close()
	infos, err := mountinfo.GetMountsFromReader(table, nil)
	for _, i := range infos {
		// Options keep the kernel's escapes until they are split: a comma may be part of one.
		options := strings.Split(i.VFSOptions, ",")
		for n := range options {
			options[n] = unescape(options[n])
		}
		mounts = append(mounts, Mount{ID: i.ID, Major: uint32(i.Major), Minor: uint32(i.Minor),
			Root: i.Root, Point: i.Mountpoint, Options: strings.Split(i.Options, ","),
			Type: i.FSType, Source: i.Source, SuperOptions: options})
	}
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	return mounts, nil
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`,
	`\043`, "#", `\054`, ",").Replace

// ReadStat reads the disk's counters now.
func (d Disk) ReadStat() (BlockStat, error) {
	sys, err := blockdevice.NewFS(d.root.Path("/proc"), d.root.Path("/sys"))
	if err != nil {
		return BlockStat{}, err
	}
	s, columns, err := sys.SysBlockDeviceStat(d.Name)
	const least = 11 // discards and flushes are missing before Linux 4.18 and 5.5
	if err == nil && columns < least {
		err = fmt.Errorf("%d columns, at least %d are needed", columns, least)
	}
	if err != nil {
		return BlockStat{}, fmt.Errorf("the counters of %s: %w", d.Name, err)
	}
	bytes := func(sectors uint64) int64 { return int64(sectors) * SectorSize }
	ticks := func(n uint64) time.Duration { return time.Duration(n) * tick }
	return BlockStat{InFlight: int64(s.IOsInProgress), DeviceStat: tracing.DeviceStat{
		ReadIOs: int64(s.ReadIOs), ReadBytes: bytes(s.ReadSectors), ReadTicks: ticks(s.ReadTicks),
		WriteIOs: int64(s.WriteIOs), WriteBytes: bytes(s.WriteSectors),
		WriteTicks: ticks(s.WriteTicks),
		IOTicks:    ticks(s.IOsTotalTicks), TimeInQueue: ticks(s.WeightedIOTicks),
		DiscardIOs: int64(s.DiscardIOs), DiscardBytes: bytes(s.DiscardSectors),
		DiscardTicks: ticks(s.DiscardTicks),
		FlushIOs:     int64(s.FlushRequestsCompleted), FlushTicks: ticks(s.TimeSpentFlushing),
	}}, nil
}

func blockNode(path string) (major, minor uint32, err error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return 0, 0, fmt.Errorf("%s is no block device", path)
	}
	return unix.Major(st.Rdev), unix.Minor(st.Rdev), nil
}

// statfs takes the type from the mount table, which distinguishes ext4 from ext3 and names the FUSE
// filesystem. If a process does not see its mounts, it uses the kernel's number.
func statfs(path string) (Filesystem, error) {
	var s unix.Statfs_t
	if err := uninterrupted(func() error { return unix.Statfs(path, &s) }); err != nil {
		return Filesystem{}, err
	}
	unit := cmp.Or(int64(s.Frsize), int64(s.Bsize))
	f := Filesystem{
		Type:  typeOf(uint32(s.Type)),
		Free:  int64(s.Bavail) * unit,
		Total: int64(s.Blocks) * unit,
	}
	if s.Files > 0 {
		f.FreeFiles = new(int64(s.Ffree))
	}
	here, err := identify(path)
	if err != nil {
		return f, nil // the path has just disappeared: its space is known
	}
	if s.Fsid != (unix.Fsid{}) {
		f.id = fmt.Sprintf("%08x%08x", uint32(s.Fsid.Val[0]), uint32(s.Fsid.Val[1]))
	}
	if m, err := thisMachine().mountOf(here); err == nil && m.Type != "" {
		f.Type, f.source = m.Type, m.Source
	}
	root, err := identify("/")
	f.Root = err == nil && here.major == root.major && here.minor == root.minor
	return f, nil
}

// allowedCPUs counts the processors that this process may run on, including the limits of cpusets.
func allowedCPUs() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0 // more than the set holds (1024): the runtime's own count is used
	}
	return set.Count()
}

// SystemFacts returns nothing: Linux has /proc and /sys.
func SystemFacts() (kernel, cpu string, memory int64) { return "", "", 0 }

// ResetPeakRSS resets the peak to the current size, so that a benchmark does not inherit the peak of an
// earlier one. It fails if the kernel forbids it (some sandboxes); PeakRSS then counts from the start of
// the process.
func ResetPeakRSS() error {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak memory of this process: %w", err)
	}
	return nil
}

// peakRSS prefers the high-water mark that ResetPeakRSS resets: getrusage's, in KiB, is never
// reset, and is inherited through exec from the process that started this one.
func peakRSS(maxrss int64) int64 {
	if peak := Root("").KiB("VmHWM", "/proc/self/status"); peak > 0 {
		return peak
	}
	return maxrss << 10
}
