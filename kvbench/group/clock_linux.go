package group

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // no error: every kernel has this clock
	return now.Nano()
}

// WhoseClock identifies the monotonic clock of this process by the kernel's boot id and the process's
// time namespace. Processes with the same boot id and the same namespace read the same clock. An empty
// value is unknown. Linux before 5.6 has no time namespaces: the value is empty, and all processes of the
// kernel read one clock.
func WhoseClock() (boot, namespace string) {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ = os.Readlink("/proc/self/ns/time")
	return strings.TrimSpace(string(id)), namespace
}
