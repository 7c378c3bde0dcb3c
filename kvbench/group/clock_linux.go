package group

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

// WhoseClock identifies the monotonic clock of this process by the kernel's boot id and the time
// namespace. Processes with the same two values read the same clock. An empty value is unknown.
// Kernels before 5.6 have no time namespaces: all processes read one clock.
func WhoseClock() (boot, namespace string) {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ = os.Readlink("/proc/self/ns/time")
	return strings.TrimSpace(string(id)), namespace
}
