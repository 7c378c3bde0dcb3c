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
	// Root is which directory of the filesystem is mounted here (bind mounts, containers).
	Root         string
	Point        string   // where it is mounted
	Options      []string // of this mount: rw, noatime
	Type         string   // filesystem type: ext4, nfs4, fuse.sshfs
	Source       string   // what is mounted: /dev/sda1, server:/export, a ZFS dataset
	SuperOptions []string // of the filesystem: the journal mode, NFS rsize, overlay upperdir
}

// SuperOption returns the value of the filesystem option key ("upperdir"), and whether it is there.
func (m Mount) SuperOption(key string) (string, bool) {
	for _, o := range m.SuperOptions {
		if name, value, _ := strings.Cut(o, "="); name == key {
			return value, true
		}
	}
	return "", false
}

// TransferSizes returns the largest read and write in bytes that the mount sends to its server at a
// time: rsize and wsize of NFS and SMB, msize of 9p. A request that is larger is split into
// transfers of that size. ok is false for mounts that do not tell, and for those that are no
// network's.
func (m Mount) TransferSizes() (read, write int64, ok bool) {
	size := func(key string) int64 {
		text, _ := m.SuperOption(key)
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

// mounts reads the mount table as this process sees it.
func (m machine) mounts() ([]Mount, error) {
	text, err := os.ReadFile(m.Path("/proc/self/mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	return ParseMounts(string(text))
}

// ParseMounts reads the format of /proc/<pid>/mountinfo (proc_pid_mountinfo(5)), in the kernel's
// order: of two mounts on one point the later hides the earlier.
func ParseMounts(text string) (mounts []Mount, err error) {
	for i, line := range strings.Split(text, "\n") {
		if line == "" {
			continue
		}
		m, err := parseMount(line)
		if err != nil {
			return nil, fmt.Errorf("mountinfo line %d: %w", i+1, err)
		}
		mounts = append(mounts, m)
	}
	return mounts, nil
}

// unescape undoes the kernel's octal escapes: of space, tab, newline, backslash and hash, and of
// the comma that parts options.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`,
	`\043`, "#", `\054`, ",").Replace

// parseMount reads "36 35 98:0 /root /point rw,noatime shared:1 - ext4 /dev/sda1
// rw,errors=continue": the number of optional fields before the dash varies, and a source may be
// empty (mount -t tmpfs "" /x).
func parseMount(line string) (Mount, error) {
	before, after, _ := strings.Cut(line, " - ")
	f, g := strings.Split(before, " "), strings.SplitN(after, " ", 3)
	if len(f) < 6 || len(g) < 2 {
		return Mount{}, fmt.Errorf("not a mount: %q", clip(line))
	}
	id, err := strconv.Atoi(f[0])
	if err != nil {
		return Mount{}, fmt.Errorf("mount id %q is no number", clip(f[0]))
	}
	major, minor, err := parseDeviceNumber(f[2])
	if err != nil {
		return Mount{}, err
	}
	m := Mount{
		ID: id, Major: major, Minor: minor, Root: unescape(f[3]), Point: unescape(f[4]),
		Options: strings.Split(f[5], ","), Type: g[0], Source: unescape(g[1]),
	}
	if len(g) > 2 {
		for o := range strings.SplitSeq(g[2], ",") {
			m.SuperOptions = append(m.SuperOptions, unescape(o))
		}
	}
	return m, nil
}

// findMount picks the mount that holds a path: by mount id where the kernel gives one (Linux 5.8),
// else by the longest mount point above the path. The device number is no key: btrfs subvolumes
// have numbers that no mount shows. A path outside of all mounts (chroot) has a zero Mount.
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

// FindCgroup finds the directory of a cgroup of version 2, by that directory or by its path below
// where these cgroups are mounted.
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

// holds tells whether path is dir or lies in it.
func holds(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
