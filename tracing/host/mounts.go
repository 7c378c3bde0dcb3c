package host

import (
	"bufio"
	"fmt"
	"io"
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
	keys := [2]string{"rsize", "wsize"}
	switch {
	case m.Type == "9p":
		keys = [2]string{"msize", "msize"}
	case places[m.Type] != onNetwork:
		return 0, 0, false
	}
	sizes := [2]int64{}
	for i, key := range keys {
		text, _ := m.SuperOption(key)
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 {
			return 0, 0, false
		}
		sizes[i] = n
	}
	return sizes[0], sizes[1], true
}

// ParseMounts reads the format of /proc/<pid>/mountinfo (proc_pid_mountinfo(5)), in the kernel's
// order: of two mounts on one point the later hides the earlier.
func ParseMounts(r io.Reader) ([]Mount, error) {
	var mounts []Mount
	in := bufio.NewScanner(r)
	// An overlay with a hundred lower directories is one long line.
	in.Buffer(nil, 1<<20)
	for n := 1; in.Scan(); n++ {
		if strings.TrimSpace(in.Text()) == "" {
			continue
		}
		m, err := parseMount(in.Text())
		if err != nil {
			return nil, fmt.Errorf("mountinfo line %d: %w", n, err)
		}
		mounts = append(mounts, m)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("mountinfo: %w", err)
	}
	return mounts, nil
}

// parseMount reads "36 35 98:0 /root /point rw,noatime shared:1 - ext4 /dev/sda1
// rw,errors=continue": the number of optional fields before the dash varies.
func parseMount(line string) (Mount, error) {
	f := strings.Split(line, " ") // not Fields: a source may be empty (mount -t tmpfs "" /x)
	dash := -1
	if len(f) > 6 {
		dash = slices.Index(f[6:], "-") + 6
	}
	if dash < 6 || len(f) < dash+3 {
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
		Options: strings.Split(f[5], ","), Type: f[dash+1], Source: unescape(f[dash+2]),
	}
	if len(f) > dash+3 {
		for o := range strings.SplitSeq(f[dash+3], ",") {
			m.SuperOptions = append(m.SuperOptions, unescape(o))
		}
	}
	return m, nil
}

// unescape undoes the kernel's octal escapes of space, tab, newline and backslash.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// findMount picks the mount that holds a path: by mount id where the kernel gives one (Linux 5.8),
// else by the longest mount point above the path. The device number is no key: btrfs subvolumes
// have numbers that no mount shows.
func findMount(mounts []Mount, at identity) (Mount, bool) {
	if at.mountID != 0 {
		for _, m := range mounts {
			if m.ID == at.mountID {
				return m, true
			}
		}
	}
	var best Mount
	found := false
	for _, m := range mounts {
		if holds(m.Point, at.path) && (!found || len(m.Point) >= len(best.Point)) {
			best, found = m, true
		}
	}
	return best, found
}

// holds tells whether path is dir or lies in it.
func holds(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
