package privtest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// cgroups is the mount point of the control groups.
const cgroups = "/sys/fs/cgroup"

// Throttle is a cgroup whose processes are throttled on one device.
type Throttle struct {
	group   string
	unified bool              // cgroup v2
	none    map[string]string // by file: what takes its limits away
}

// ThrottleLoop limits the requests of processes to the loop device. It applies to direct I/O and to reads;
// the kernel writes buffered writes back, with cgroup v1 on behalf of no process. Processes join with Add,
// or with AddSelf as the first words of a shell command. The end of the test removes the cgroup and moves
// its processes to the parent.
func ThrottleLoop(t testing.TB, l *Loop, r Rates) *Throttle {
	t.Helper()
	Root(t)
	th, err := throttle(cgroups, l, r)
	if th != nil {
		t.Cleanup(func() {
			if err := th.remove(); err != nil {
				t.Errorf("remove the throttled cgroup: %v", err)
			}
		})
	}
	Need(t, err)
	return th
}

// throttle makes a group with limits below the mount point of the control groups. After an error the group
// may exist.
func throttle(root string, l *Loop, r Rates) (*Throttle, error) {
	parent, unified, err := throttling(root)
	if err != nil {
		return nil, err
	}
	group, err := os.MkdirTemp(parent, ownPrefix())
	if err != nil {
		return nil, err
	}
	th := &Throttle{group, unified, map[string]string{}}
	device := fmt.Sprintf("%d:%d ", l.Major, l.Minor)
	for _, limit := range []struct {
		key, v1 string
		most    int64
	}{{"rbps=", v1Read, r.Read}, {"wbps=", v1Write, r.Write},
		{"riops=", "blkio.throttle.read_iops_device", r.ReadIOPS},
		{"wiops=", "blkio.throttle.write_iops_device", r.WriteIOPS}} {
		if limit.most == 0 {
			continue
		}
		file, key, none := limit.v1, "", "0"
		if unified {
			file, key, none = "io.max", limit.key, "max"
		}
		rule := []byte(fmt.Sprint(device, key, limit.most))
		err = errors.Join(err, os.WriteFile(filepath.Join(group, file), rule, 0o644))
		th.none[file] = cmp.Or(th.none[file], device) + " " + key + none
	}
	return th, err
}

// The limits of cgroup v1.
const (
	v1Read  = "blkio.throttle.read_bps_device"
	v1Write = "blkio.throttle.write_bps_device"
)

// throttling finds the hierarchy that can throttle, and the group in it below which new ones can be made:
// blkio of version 1, else version 2 if version 1 does not use the io controller. It enables the
// controller for children if necessary, which does not affect other groups, and leaves it enabled.
func throttling(root string) (parent string, unified bool, err error) {
	blkio := filepath.Join(root, "blkio")
	if _, err := os.Stat(filepath.Join(blkio, v1Read)); err == nil {
		return blkio, false, nil
	}
	has := func(file string) bool {
		return slices.Contains(strings.Fields(readLine(filepath.Join(root, file))), "io")
	}
	if !has("cgroup.controllers") {
		return "", false, fmt.Errorf("throttling needs blkio of cgroup v1 or io of v2 in %s", root)
	}
	if !has("cgroup.subtree_control") {
		err = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+io"), 0o644)
		if err != nil {
			err = fmt.Errorf("hand the io controller of cgroup v2 down: %w", err)
		}
	}
	return root, true, err
}

// Add moves a whole process, all threads of it, into the throttled group.
func (th *Throttle) Add(t testing.TB, pid int) {
	t.Helper()
	if err := os.WriteFile(th.procs(), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		t.Fatalf("throttle process %d: %v", pid, err)
	}
}

// Lift removes the limits, also for waiting requests.
func (th *Throttle) Lift(t testing.TB) {
	t.Helper()
	for file, none := range th.none {
		if err := os.WriteFile(filepath.Join(th.group, file), []byte(none), 0o644); err != nil {
			t.Fatalf("lift the limits of %s: %v", th.group, err)
		}
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
		_ = os.WriteFile(filepath.Join(filepath.Dir(th.group), "cgroup.procs"), []byte(pid), 0o644)
	}
	return os.Remove(th.group)
}
