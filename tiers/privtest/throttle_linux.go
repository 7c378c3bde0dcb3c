package privtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// blkio is the hierarchy of cgroup v1 that can throttle. Version 2 could do the same (io.max) but
// only where the io controller is handed down to children, which a test should not rearrange.
const blkio = "/sys/fs/cgroup/blkio"

// Throttle is a cgroup whose processes are slowed down on one device.
type Throttle struct{ group string }

// ThrottleLoop limits what processes may read from and write to the loop device, in bytes per
// second; 0 is no limit. It holds for direct I/O and for reads; buffered writes are written back by
// the kernel in the name of nobody. Processes join with Add, or with AddSelf as the first words of
// a shell command. The cgroup is removed at the end of the test, and those in it go back to where
// new processes are.
func ThrottleLoop(t testing.TB, l *Loop, readBps, writeBps int64) *Throttle {
	t.Helper()
	Root(t)
	if _, err := os.Stat(filepath.Join(blkio, "blkio.throttle.read_bps_device")); err != nil {
		Need(t, fmt.Errorf("throttling needs cgroup v1 blkio: %w", err))
	}
	group, err := os.MkdirTemp(blkio, ownPrefix())
	Need(t, err)
	th := &Throttle{group: group}
	t.Cleanup(func() {
		if err := th.remove(); err != nil {
			t.Errorf("remove the throttled cgroup: %v", err)
		}
	})
	for file, bps := range map[string]int64{"blkio.throttle.read_bps_device": readBps,
		"blkio.throttle.write_bps_device": writeBps} {
		if bps > 0 {
			rule := fmt.Sprintf("%d:%d %d", l.Major, l.Minor, bps)
			Need(t, os.WriteFile(filepath.Join(group, file), []byte(rule), 0))
		}
	}
	return th
}

// Add moves a whole process, all threads of it, into the throttled group.
func (th *Throttle) Add(t testing.TB, pid int) {
	t.Helper()
	if err := os.WriteFile(th.procs(), []byte(strconv.Itoa(pid)), 0); err != nil {
		t.Fatalf("throttle process %d: %v", pid, err)
	}
}

// AddSelf is shell text that moves the shell into the group: `sh -c "<AddSelf> && exec program"` is
// throttled from its first byte.
func (th *Throttle) AddSelf() string { return "echo $$ > '" + th.procs() + "'" }

func (th *Throttle) procs() string { return filepath.Join(th.group, "cgroup.procs") }

// remove moves the processes back first: the kernel refuses to remove a group that is in use.
func (th *Throttle) remove() error {
	inside, err := os.ReadFile(th.procs())
	if err != nil {
		return err
	}
	for pid := range strings.FieldsSeq(string(inside)) {
		// A process that has just ended cannot be moved and need not be.
		_ = os.WriteFile(filepath.Join(blkio, "cgroup.procs"), []byte(pid), 0)
	}
	return os.Remove(th.group)
}
