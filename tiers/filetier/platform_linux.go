package filetier

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kvbench/tracing/host"
)

const openDirect = unix.O_DIRECT

// afterOpen does nothing: on Linux the open flag is enough.
func afterOpen(int) error { return nil }

// setDirect sets O_DIRECT on an open file, as some engines do.
func setDirect(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_DIRECT)
	return err
}

// allocate preallocates the blocks of a range, so that direct writes do not extend the file.
func allocate(fd int, off, size int64) error {
	return unix.Fallocate(fd, 0, off, size)
}

// punch frees the blocks of a range, which reads as zeros afterwards.
func punch(fd int, off, size int64) error {
	return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, size)
}

// dropCache drops the file from the page cache.
func dropCache(fd int) error { return unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) }

// sequential advises the kernel that the file is read from front to back.
func sequential(fd int) error { return unix.Fadvise(fd, 0, 0, unix.FADV_SEQUENTIAL) }

// directAlign returns the alignment that direct I/O on the file needs, at least 4096.
func directAlign(fd int) int {
	var s unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &s)
	if err != nil || s.Mask&unix.STATX_DIOALIGN == 0 {
		return pageSize
	}
	return max(pageSize, int(s.Dio_mem_align), int(s.Dio_offset_align),
		int(s.Dio_read_offset_align))
}

// directIgnored returns why this filesystem would accept direct I/O without doing it, or "".
func directIgnored(f host.Filesystem) string {
	switch f.Type {
	case "tmpfs", "ramfs":
		return f.Type + " keeps everything in memory"
	case "zfs":
		text, _ := os.ReadFile("/sys/module/zfs/version") // unreadable: version unknown
		version, _, _ := strings.Cut(strings.TrimSpace(string(text)), "-")
		var major, minor int
		if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err == nil &&
			(major < 2 || major == 2 && minor < 3) {
			return "zfs " + version +
				" reads and writes through its own cache (direct I/O came with 2.3)"
		}
	}
	return ""
}

// dirtied returns how many pages this machine has made dirty in its page cache since it started.
func dirtied() int64 {
	n, _ := strconv.ParseInt(host.Root("").Field("nr_dirtied ", "/proc/vmstat"), 10, 64)
	return n // 0 if unknown: writes then count as direct
}

// cachedWrites reports whether write, which writes a number of pages with direct I/O, makes them dirty in the
// page cache. count is dirtied. Other processes make pages dirty, too: one write with few dirty pages is
// direct. Otherwise more than half of the writes must exceed a pause of the same length by half of the pages.
func cachedWrites(pages int64, count func() int64, write func() error) (bool, error) {
	const most = 9
	more := 0
	for range most {
		before, begin := count(), time.Now()
		if err := write(); err != nil {
			return false, err
		}
		pause, after := time.Since(begin), count()
		if after-before < pages/2 {
			return false, nil
		}
		time.Sleep(pause)
		if after-before-(count()-after) >= pages/2 {
			more++
		}
	}
	return more > most/2, nil
}
