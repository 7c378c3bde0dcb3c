package coordinate

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // which every kernel has
	return now.Nano()
}

// WhoseClock is the boot and the time namespace of this process's monotonic clock; empty is
// unknown. Kernels before 5.6 have one such clock for all.
func WhoseClock() (boot, namespace string) {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ = os.Readlink("/proc/self/ns/time")
	return strings.TrimSpace(string(id)), namespace
}
