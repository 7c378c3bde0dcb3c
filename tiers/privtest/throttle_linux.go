package privtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cgroups is the mount point of the control groups.
const cgroups = "/sys/fs/cgroup"

// The limits of cgroup v1.
const (
	v1Read  = "blkio.throttle.read_bps_device"
	v1Write = "blkio.throttle.write_bps_device"
)

// ThrottleLoop makes a cgroup whose processes read and write at most rate bytes per second on a loop
// device. It returns shell text that moves the shell into the cgroup: `sh -c "<text> && exec program"`
// is throttled from its first byte. The limit applies to reads and to direct I/O; with cgroup v1 the
// kernel writes the page cache back outside of the cgroup. The end of the test removes the cgroup.
func ThrottleLoop(t testing.TB, l *Loop, rate int64) (join string) {
	t.Helper()
	parent, unified, err := throttling()
	Need(t, err)
	group, err := os.MkdirTemp(parent, ownPrefix())
	Need(t, err)
	processes := filepath.Join(group, "cgroup.procs")
	t.Cleanup(func() {
		// The kernel refuses to remove a cgroup with processes. One that has just ended cannot be moved.
		inside, err := os.ReadFile(processes)
		for pid := range strings.FieldsSeq(string(inside)) {
			_ = os.WriteFile(filepath.Join(parent, "cgroup.procs"), []byte(pid), 0o644)
		}
		if err == nil {
			err = os.Remove(group)
		}
		if err != nil {
			t.Errorf("remove the throttled cgroup: %v", err)
		}
	})
	limits := map[string]string{v1Read: fmt.Sprint(rate), v1Write: fmt.Sprint(rate)}
	if unified {
		limits = map[string]string{"io.max": fmt.Sprintf("rbps=%d wbps=%[1]d", rate)}
	}
	for file, limit := range limits {
		rule := fmt.Sprintf("%d:%d %s", l.Major, l.Minor, limit)
		Need(t, os.WriteFile(filepath.Join(group, file), []byte(rule), 0o644))
	}
	return "echo $$ > '" + processes + "'"
}

// throttling finds the hierarchy that can throttle, and the cgroup in it that may have children:
// blkio of version 1, else version 2 where version 1 does not use its io controller. It enables that
// controller for the children of the root and leaves it enabled, which limits no process.
func throttling() (parent string, unified bool, err error) {
	blkio := filepath.Join(cgroups, "blkio")
	if _, err := os.Stat(filepath.Join(blkio, v1Read)); err == nil {
		return blkio, false, nil
	}
	has := func(file string) bool {
		return slices.Contains(strings.Fields(readLine(filepath.Join(cgroups, file))), "io")
	}
	if !has("cgroup.controllers") {
		return "", false, fmt.Errorf("throttling needs blkio of cgroup v1 or io of v2 in %s", cgroups)
	}
	if !has("cgroup.subtree_control") {
		err = os.WriteFile(filepath.Join(cgroups, "cgroup.subtree_control"), []byte("+io"), 0o644)
		if err != nil {
			err = fmt.Errorf("enable the io controller of cgroup v2 for children: %w", err)
		}
	}
	return cgroups, true, err
}
