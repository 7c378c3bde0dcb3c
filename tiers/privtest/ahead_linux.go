package privtest

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Ahead gives this process, and those that it starts, the processor before the others of its
// session, for the duration of the test. It is for tests that need little of it. Where the kernel
// groups processes by session (autogroup), other sessions keep their share: a group ahead of the
// kernel's own threads would starve those that move a loop device's bytes.
func Ahead(t testing.TB) {
	t.Helper()
	Root(t)
	group, err := unix.Getpgid(0)
	Need(t, err)
	Need(t, unix.Setpgid(0, 0)) // the niceness of a group is that of all its threads
	t.Cleanup(func() {
		_ = unix.Setpriority(unix.PRIO_PGRP, 0, 0)
		_ = unix.Setpgid(0, group)
	})
	Need(t, unix.Setpriority(unix.PRIO_PGRP, 0, -20))
}
