package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Filesystem describes what lies under a path.
type Filesystem struct {
	Type    string // as mount(8) spells it: "ext4", "xfs", "nfs4", "fuse.sshfs"
	Free    int64  // bytes that this user may still write
	Total   int64  // bytes altogether
	Root    bool   // it is the filesystem of /
	Network bool   // its data lies on other machines
	Memory  bool   // its data lies in memory: tmpfs, ramfs
}

// place is where a filesystem keeps its bytes.
type place int

const (
	onDevice place = iota // and all types that are not known
	inMemory
	onNetwork
	onVirtualHost // of the virtual machine
	inUserSpace
	inLayers
	inPool
)

// places are the filesystems that do not simply lie on a block device of this host. FUSE's are
// listed by the name behind "fuse.".
var places = map[string]place{
	"tmpfs": inMemory, "ramfs": inMemory, "devtmpfs": inMemory, "hugetlbfs": inMemory,

	"nfs": onNetwork, "nfs4": onNetwork, "cifs": onNetwork, "smb3": onNetwork, "smbfs": onNetwork,
	"afs": onNetwork, "afpfs": onNetwork, "ceph": onNetwork, "lustre": onNetwork, "gpfs": onNetwork,
	"beegfs": onNetwork, "beegfs_nodev": onNetwork, "orangefs": onNetwork, "pvfs2": onNetwork,
	"ocfs2": onNetwork, "gfs2": onNetwork, "wekafs": onNetwork, "webdav": onNetwork,
	"glusterfs": onNetwork, "sshfs": onNetwork, "s3fs": onNetwork, "gcsfuse": onNetwork,
	"rclone": onNetwork, "goofys": onNetwork, "juicefs": onNetwork, "mount-s3": onNetwork,

	"9p": onVirtualHost, "virtiofs": onVirtualHost,
	"fuse": inUserSpace, "overlay": inLayers, "zfs": inPool,
}

// FilesystemOf describes the filesystem of path, or of its nearest directory that exists.
func FilesystemOf(path string) (Filesystem, error) {
	at, err := existing(path)
	if err != nil {
		return Filesystem{}, err
	}
	f, err := statfs(at)
	if err != nil {
		return f, fmt.Errorf("ask for the filesystem of %s: %w", at, err)
	}
	f.Memory = places[f.Type] == inMemory
	// A shared folder of the virtual machine's host (9p) is as far away as a server.
	f.Network = places[strings.TrimPrefix(f.Type, "fuse.")] == onNetwork || f.Type == "9p"
	return f, nil
}

// existing returns the nearest directory on the way to path that exists.
func existing(path string) (string, error) {
	at, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	for {
		_, err := filepath.EvalSymlinks(at)
		if err == nil {
			return at, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return "", fmt.Errorf("find the directory %s: %w", path, err)
		}
		at = filepath.Dir(at)
	}
}

// uninterrupted repeats a call that a signal interrupted, as the Go runtime's own do on network
// filesystems.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// SameFilesystem says whether two paths, or their nearest directories that exist, lie on one
// filesystem.
func SameFilesystem(a, b string) (bool, error) {
	var devices [2]uint64
	for i, path := range []string{a, b} {
		at, err := existing(path)
		if err != nil {
			return false, err
		}
		var s unix.Stat_t
		if err := unix.Stat(at, &s); err != nil {
			return false, fmt.Errorf("stat %s: %w", at, err)
		}
		devices[i] = uint64(s.Dev) // int32 on darwin
	}
	return devices[0] == devices[1], nil
}

// whyNone explains to a storage engineer why no block device stands behind a mount without one.
func whyNone(m Mount) string {
	kind, _, _ := strings.Cut(m.Type, ".") // fuse.sshfs is FUSE's first, whatever it leads to
	if kind == "" {
		return "the directory belongs to no mount that this process can see"
	}
	switch places[kind] {
	case inMemory:
		return m.Type + " keeps its files in memory: no block device sees these bytes"
	case onNetwork:
		return fmt.Sprintf("%s is a network filesystem (%s): its disks are not on this host",
			m.Type, m.Source)
	case onVirtualHost:
		return fmt.Sprintf("%s passes the bytes to the host of this virtual machine (%s): "+
			"its disks cannot be seen from inside", m.Type, m.Source)
	case inUserSpace:
		return fmt.Sprintf("%s is served by a process in user space (%s): "+
			"the kernel knows no device behind it", m.Type, m.Source)
	case inLayers:
		where := "another filesystem"
		if upper, ok := m.SuperOption("upperdir"); ok {
			where = upper
		}
		return fmt.Sprintf("overlay (a container's own layer) stores its files in %s "+
			"and hides the device: use a mounted volume to see it", where)
	case inPool:
		return fmt.Sprintf("zfs spreads %s over the devices of its pool: "+
			"`zpool iostat` shows what they do", m.Source)
	}
	return fmt.Sprintf("%s (%s) has no block device of its own", m.Type, m.Source)
}
