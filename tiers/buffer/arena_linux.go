package buffer

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// adviseHuge requests huge pages. It returns why the system will not grant them, or "".
func adviseHuge(b []byte) (reason string) {
	if err := unix.Madvise(b, unix.MADV_HUGEPAGE); err != nil {
		return fmt.Sprintf("ordinary pages: madvise(MADV_HUGEPAGE): %v", err)
	}
	const setting = "/sys/kernel/mm/transparent_hugepage/enabled"
	if text, err := os.ReadFile(setting); err == nil && strings.Contains(string(text), "[never]") {
		return "ordinary pages: " + setting + " is never; set it to madvise"
	}
	return ""
}

// hugeBytes returns how many bytes of b are in huge pages, according to the kernel's smaps.
func hugeBytes(b []byte) (int64, error) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return parseSmaps(f, uint64(address(b)), uint64(len(b)))
}

// parseSmaps sums AnonHugePages of the mappings that overlap [at, at+size). The kernel merges adjacent
// mappings, so a mapping may be larger than the range: the sum is at most the overlap.
func parseSmaps(r io.Reader, at, size uint64) (int64, error) {
	var sum, overlap uint64
	s := bufio.NewScanner(r)
	for s.Scan() {
		var lo, hi, kb uint64
		if line := s.Text(); strings.HasPrefix(line, "AnonHugePages:") {
			if _, err := fmt.Sscanf(line, "AnonHugePages: %d kB", &kb); err != nil {
				return 0, fmt.Errorf("/proc/self/smaps: %q: %w", line, err)
			}
			sum += min(kb<<10, overlap)
		} else if n, _ := fmt.Sscanf(line, "%x-%x", &lo, &hi); n == 2 {
			lo, hi = max(lo, at), min(hi, at+size)
			overlap = max(lo, hi) - lo
		}
	}
	return int64(sum), s.Err()
}

// bind is mbind(2) on untouched memory: it prefers one node, or interleaves the pages of several.
func bind(mem []byte, nodes []int) error {
	mode := unix.MPOL_PREFERRED
	if len(nodes) > 1 {
		mode = unix.MPOL_INTERLEAVE
	}
	const bits = 64
	mask := make([]uint64, slices.Max(nodes)/bits+1)
	for _, n := range nodes {
		mask[n/bits] |= 1 << (n % bits)
	}
	// The kernel uses one bit less than maxnode (mm/mempolicy.c, get_nodes).
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, address(mem), uintptr(len(mem)), uintptr(mode),
		uintptr(unsafe.Pointer(&mask[0])), uintptr(len(mask)*bits+1), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
