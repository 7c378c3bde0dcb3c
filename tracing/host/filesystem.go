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

// whyNone explains to a storage engineer, for each place, why no block device stands behind a mount
// there: %[1]s is its type, %[2]s its source, %[3]s where an overlay keeps its files.
var whyNone = [...]string{
	onDevice:  "%[1]s (%[2]s) has no block device of its own",
	inMemory:  "%[1]s keeps its files in memory: no block device sees these bytes",
	onNetwork: "%[1]s is a network filesystem (%[2]s): its disks are not on this host",
	onVirtualHost: "%[1]s passes the bytes to the host of this virtual machine (%[2]s): " +
		"its disks cannot be seen from inside",
	inUserSpace: "%[1]s is served by a process in user space (%[2]s): " +
		"the kernel knows no device behind it",
	inLayers: "overlay (a container's own layer) stores its files in %[3]s " +
		"and hides the device: use a mounted volume to see it",
	inPool: "zfs spreads %[2]s over the devices of its pool: `zpool iostat` shows what they do",
}

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

// SameFilesystem says whether two paths, or their nearest directories that exist, are known to lie
// on one filesystem.
func SameFilesystem(a, b string) bool {
	var on [2]unix.Stat_t
	for i, path := range []string{a, b} {
		at, err := existing(path)
		if err != nil || unix.Stat(at, &on[i]) != nil {
			return false
		}
	}
	return on[0].Dev == on[1].Dev
}

// whyNoDevice says why no block device stands behind a mount without one.
func (m Mount) whyNoDevice() string {
	kind, _, _ := strings.Cut(m.Type, ".") // fuse.sshfs is FUSE's first, whatever it leads to
	if kind == "" {
		return "the directory belongs to no mount that this process can see"
	}
	upper, ok := m.SuperOption("upperdir")
	if !ok {
		upper = "another filesystem"
	}
	return fmt.Sprintf(whyNone[places[kind]], m.Type, m.Source, upper)
}
