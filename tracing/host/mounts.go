package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Mount is one line of /proc/self/mountinfo.
type Mount struct {
	ID int // the kernel's mount id
	// Major and Minor are the filesystem's; major 0 means that it has no block device of its own.
	Major, Minor uint32
	// Root is the directory of the filesystem that is mounted here (bind mounts, containers).
	Root         string
	Point        string   // where it is mounted
	Options      []string // of this mount: rw, noatime
	Type         string   // filesystem type: ext4, nfs4, fuse.sshfs
	Source       string   // what is mounted: /dev/sda1, server:/export, a ZFS dataset
	SuperOptions []string // of the filesystem: the journal mode, NFS rsize, overlay upperdir
}

// superOption returns the value of the filesystem option key ("upperdir"), and whether it exists.
func (m Mount) superOption(key string) (string, bool) {
	for _, o := range m.SuperOptions {
		if name, value, _ := strings.Cut(o, "="); name == key {
			return value, true
		}
	}
	return "", false
}

// TransferSizes returns the largest read and write in bytes that the mount sends to its server in one
// transfer: rsize and wsize of NFS and SMB, msize of 9p. Larger requests are split. ok is false for mounts
// without these options, and for mounts that are not on a network.
func (m Mount) TransferSizes() (read, write int64, ok bool) {
	size := func(key string) int64 {
		text, _ := m.superOption(key)
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return 0
		}
		return n
	}
	switch {
	case m.Type == "9p":
		read, write = size("msize"), size("msize")
	case placeOf(m.Type) == onNetwork:
		read, write = size("rsize"), size("wsize")
	}
	if read == 0 || write == 0 {
		return 0, 0, false
	}
	return read, write, true
}

// findMount finds the mount of a path: by mount id if the kernel reports it (Linux 5.8), else by the
// longest mount point above the path. It does not use the device number: btrfs subvolumes have numbers that
// no mount shows. A path outside all mounts (chroot) has a zero Mount.
func findMount(mounts []Mount, at identity) (best Mount) {
	for _, m := range mounts {
		if m.ID == at.mountID {
			return m // the kernel's ids begin at 1
		}
		if holds(m.Point, at.path) && len(m.Point) >= len(best.Point) {
			best = m
		}
	}
	return best
}

// FindCgroup finds the directory of a cgroup (version 2) by that directory, or by its path below the
// mount point of the cgroups.
func FindCgroup(name string) (dir string, err error) { return thisMachine().findCgroup(name) }

func (m machine) findCgroup(name string) (string, error) {
	mounts, err := m.mounts()
	if err != nil {
		return "", err
	}
	var points []string
	for _, at := range mounts {
		if at.Type == "cgroup2" && !slices.Contains(points, at.Point) {
			points = append(points, at.Point)
		}
	}
	if len(points) == 0 {
		return "", errors.New("this machine has no cgroups of version 2 mounted")
	}
	for _, point := range points {
		dir := name
		if !holds(point, dir) {
			dir = filepath.Join(point, name)
		}
		if _, err := os.Stat(m.Path(dir, "cgroup.procs")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("there is no cgroup of version 2 named %s (they are below %s)", name,
		strings.Join(points, ", "))
}

// holds reports whether path is dir or below it.
func holds(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
