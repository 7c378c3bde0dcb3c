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
	Type     string // as mount(8) spells it: "ext4", "xfs", "nfs4", "fuse.sshfs"
	Free     int64  // bytes that this user may still write
	Total    int64  // bytes altogether
	Root     bool   // it is the filesystem of /
	Network  bool   // its data lies on other machines
	Memory   bool   // its data lies in memory: tmpfs, ramfs
	ReadOnly bool
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
	f.Network = networkTypes[f.Type] || strings.HasPrefix(f.Type, "fuse.") && networkTypes[strings.TrimPrefix(f.Type, "fuse.")]
	f.Memory = f.Type == "tmpfs" || f.Type == "ramfs" || f.Type == "devtmpfs"
	return f, nil
}

// networkTypes are filesystems whose data lies elsewhere, also behind FUSE.
var networkTypes = map[string]bool{
	"nfs": true, "nfs4": true, "cifs": true, "smb3": true, "smbfs": true, "9p": true, "afs": true, "afpfs": true,
	"ceph": true, "lustre": true, "gpfs": true, "beegfs": true, "orangefs": true, "ocfs2": true, "gfs2": true, "webdav": true,
	"glusterfs": true, "sshfs": true, "s3fs": true, "gcsfuse": true, "rclone": true, "goofys": true, "juicefs": true, "mount-s3": true,
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

// uninterrupted repeats a call that a signal interrupted, as the Go runtime's own do on network filesystems.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// SameFilesystem says whether two paths, or their nearest directories that
// exist, lie on one filesystem.
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
