package host

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func statfs(path string) (Filesystem, error) {
	var s unix.Statfs_t
	if err := uninterrupted(func() error { return unix.Statfs(path, &s) }); err != nil {
		return Filesystem{}, err
	}
	unit := int64(s.Frsize)
	if unit == 0 {
		unit = int64(s.Bsize)
	}
	f := Filesystem{
		Type:     magicType(int64(s.Type)),
		Free:     int64(s.Bavail) * unit,
		Total:    int64(s.Blocks) * unit,
		ReadOnly: s.Flags&unix.ST_RDONLY != 0,
	}
	var here, root unix.Stat_t
	if unix.Stat(path, &here) == nil {
		f.Root = unix.Stat("/", &root) == nil && here.Dev == root.Dev
		// The list of mounts knows the name exactly (ext4 from ext3, which FUSE); btrfs subvolumes are not in it
		// by device number, the magic number does for those.
		if t := mountType(here.Dev); t != "" {
			f.Type = t
		}
	}
	return f, nil
}

func mountType(dev uint64) string {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	return parseMountType(f, unix.Major(dev), unix.Minor(dev))
}

// parseMountType finds the type of the filesystem on device major:minor in /proc/self/mountinfo, whose lines are
// "36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/root rw".
func parseMountType(r io.Reader, major, minor uint32) string {
	want := fmt.Sprintf("%d:%d", major, minor)
	for s := bufio.NewScanner(r); s.Scan(); {
		before, after, ok := strings.Cut(s.Text(), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if ok && len(fields) > 2 && len(kind) > 0 && fields[2] == want {
			return kind[0]
		}
	}
	return ""
}

// magicType names a filesystem by the number that statfs gives (linux/magic.h).
func magicType(magic int64) string {
	switch uint32(magic) {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.RAMFS_MAGIC:
		return "ramfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.CIFS_SUPER_MAGIC:
		return "cifs"
	case unix.SMB2_SUPER_MAGIC:
		return "smb3"
	case unix.CEPH_SUPER_MAGIC:
		return "ceph"
	case unix.F2FS_SUPER_MAGIC:
		return "f2fs"
	case 0x2fc12fc1:
		return "zfs"
	case 0x0bd00bd0:
		return "lustre"
	case 0x47504653:
		return "gpfs"
	}
	return fmt.Sprintf("unknown type %#x", uint32(magic))
}
