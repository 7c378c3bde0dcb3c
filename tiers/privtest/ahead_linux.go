package privtest

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Ahead lets this process, and those that it starts, have the processor before the others of its
// session for the duration of the test: what it measures is then not what they happen to leave. It
// is for tests that need little of it. Where the kernel makes a group of each session (autogroup),
// other sessions have their part as before: a group ahead of the kernel's own threads would starve
// those that move a loop device's bytes.
func Ahead(t testing.TB) {
	t.Helper()
	Root(t)
	before, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	Need(t, err)
	const zero = 20 // the system call returns 20 minus the niceness, to have no negative
	t.Cleanup(func() { _ = renice(zero - before) })
	Need(t, renice(-20))
}

// renice gives all threads of this process a niceness, which those that they start inherit.
func renice(nice int) error {
	for range 2 { // also those that threads of the old one have started meanwhile
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil {
				return err
			}
			err = unix.Setpriority(unix.PRIO_PROCESS, id, nice)
			if err != nil && err != unix.ESRCH { // it has ended
				return err
			}
		}
	}
	return nil
}
