package host

import "golang.org/x/sys/unix"

// allowedCPUs: macOS has no affinity masks.
func allowedCPUs() int { return 0 }

func physicalMemory() (bytes int64, source string) {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0, ""
	}
	return int64(n), "hw.memsize"
}
