package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Filesystem describes the filesystem of a path.
type Filesystem struct {
	Type  string // as mount(8) spells it: "ext4", "xfs", "nfs4", "fuse.sshfs"
	Free  int64  // bytes that this user may still write
	Total int64  // bytes
	// FreeFiles is the number of free inodes; nil: the filesystem has no such number.
	FreeFiles *int64
	Root      bool // it is the filesystem of /
	// Shared: users outside this host may use its free space, too: network and cluster filesystems,
	// filesystems from the host of a virtual machine, filesystems in user space, and a container's
	// layer.
	Shared bool
	Memory bool // its data is in memory: tmpfs, ramfs
	// ReadOnly: it is mounted read-only, or cannot be written at all (squashfs).
	ReadOnly bool

	place      place
	source, id string // see Identity
}

// place is the kind of storage of a filesystem.
type place int

const (
	onDevice place = iota // also for unknown types
	inMemory
	onNetwork     // file servers of any kind
	onCluster     // disks that several hosts write concurrently
	onVirtualHost // the host of the virtual machine
	inUserSpace
	inLayers
	inPool
)

// shared reports whether users outside this host may use the free space.
func (p place) shared() bool {
	return p >= onNetwork && p <= inLayers
}

// whyNone explains for each place why a mount has no block device: %[1]s is its type, %[2]s its source,
// %[3]s the directory of an overlay's files.
var whyNone = [...]string{
	onDevice:  "%[1]s (%[2]s) has no block device of its own",
	inMemory:  "%[1]s keeps its files in memory: no block device sees these bytes",
	onNetwork: "%[1]s is a network filesystem (%[2]s): its disks are not on this host",
	onCluster: "%[1]s (%[2]s) is a cluster's filesystem and names no device of this host",
	onVirtualHost: "%[1]s passes the bytes to the host of this virtual machine (%[2]s): " +
		"its disks cannot be seen from inside",
	inUserSpace: "%[1]s is served by a process in user space (%[2]s): " +
		"the kernel knows no device behind it",
	inLayers: "overlay (a container's own layer) stores its files in %[3]s " +
		"and hides the device: use a mounted volume to see it",
	inPool: "zfs spreads %[2]s over the devices of its pool: `zpool iostat` shows what they do",
}

// filesystems is the only table of filesystem types: types without a block device of this host, and the
// most common types with one. The capacity of the tier, the page cache, tracing and messages use it. Names
// are those of the mount table, FUSE's without "fuse."; if a process does not see its mounts, the number of
// statfs(2) identifies the type.
//
// Numbers are from the kernel's uapi/linux/magic.h, else from coreutils' src/fs.h, marked [1], which also
// has filesystems outside the kernel, or from fs/orangefs/protocol.h [2]. virtiofs has FUSE's number [3],
// as all of FUSE. 0 means that no number is documented.
var filesystems = []struct {
	name  string
	magic uint32 // 0 = none of its own
	place place
}{
	{"ext4", 0xEF53, onDevice}, // ext2 and ext3 have the same number
	{"xfs", 0x58465342, onDevice}, {"btrfs", 0x9123683E, onDevice},
	{"f2fs", 0xF2F52010, onDevice}, {"bcachefs", 0xCA451A4E, onDevice}, // [1]
	{"zfs", 0x2FC12FC1, inPool}, // [1]

	{"tmpfs", 0x01021994, inMemory}, {"ramfs", 0x858458F6, inMemory}, {"devtmpfs", 0, inMemory},
	{"hugetlbfs", 0x958458F6, inMemory},

	// File servers. VAST, PowerScale, FlashBlade, Amazon's EFS … are mounted as nfs4.
	{"nfs", 0x6969, onNetwork}, {"nfs4", 0, onNetwork}, {"cifs", 0xFF534D42, onNetwork},
	{"smb3", 0xFE534D42, onNetwork}, {"smbfs", 0x517B, onNetwork}, {"afs", 0x5346414F, onNetwork},
	{"kafs", 0x6B414653, onNetwork}, {"afpfs", 0, onNetwork}, {"coda", 0x73757245, onNetwork},
	{"ncpfs", 0x564C, onNetwork}, {"webdav", 0, onNetwork}, {"davfs", 0, onNetwork},

	// Parallel filesystems.
	{"lustre", 0x0BD00BD0, onNetwork},                                 // [1]
	{"gpfs", 0x47504653, onNetwork},                                   // [1]; Storage Scale
	{"beegfs", 0x19830326, onNetwork}, {"beegfs_nodev", 0, onNetwork}, // [1], as fhgfs
	{"fhgfs", 0, onNetwork}, {"ceph", 0x00C36400, onNetwork}, // the kernel's
	{"ceph-fuse", 0, onNetwork}, {"cephfs", 0, onNetwork}, // and FUSE's
	{"wekafs", 0, onNetwork},                                     // WekaFS
	{"orangefs", 0x20030528, onNetwork}, {"pvfs2", 0, onNetwork}, // [2], and its old name
	{"panfs", 0xAAD7AAEA, onNetwork}, {"ibrix", 0x013111A8, onNetwork}, // [1]
	{"quobyte", 0, onNetwork}, {"daos", 0, onNetwork}, {"dfuse", 0, onNetwork}, // DAOS: fuse.daos
	{"glusterfs", 0, onNetwork}, {"juicefs", 0, onNetwork}, {"mfs", 0, onNetwork}, // MooseFS
	{"moosefs", 0, onNetwork}, {"lizardfs", 0, onNetwork}, {"saunafs", 0, onNetwork},
	{"seaweedfs", 0, onNetwork}, {"alluxio-fuse", 0, onNetwork}, {"curvefs", 0, onNetwork},
	{"cubefs", 0, onNetwork}, {"hf3fs", 0, onNetwork}, // 3FS: fuse.hf3fs
	{"xtreemfs", 0, onNetwork}, {"hdfs", 0, onNetwork}, {"fuse_dfs", 0, onNetwork}, // HDFS

	// Objects as files.
	{"sshfs", 0, onNetwork}, {"s3fs", 0, onNetwork}, {"gcsfuse", 0, onNetwork},
	{"rclone", 0, onNetwork}, {"goofys", 0, onNetwork}, {"mount-s3", 0, onNetwork},
	{"mountpoint-s3", 0, onNetwork}, {"geesefs", 0, onNetwork}, {"blobfuse", 0, onNetwork},
	{"blobfuse2", 0, onNetwork}, {"objectivefs", 0, onNetwork}, {"ossfs", 0, onNetwork},

	// Disks that several hosts have at a time.
	{"ocfs2", 0x7461636F, onCluster}, {"gfs", 0, onCluster}, {"gfs2", 0x01161970, onCluster},
	{"acfs", 0x61636673, onCluster}, {"vxfs", 0xA501FCF5, onCluster}, // [1]; as CFS, at least
	{"cvfs", 0xBEEFDEAD, onCluster}, {"snfs", 0, onCluster}, // [1]; StorNext

	{"9p", 0x01021997, onVirtualHost}, {"virtiofs", 0, onVirtualHost},
	{"vboxsf", 0x786F4256, onVirtualHost}, {"prl_fs", 0x7C7C6673, onVirtualHost}, // [1]
	{"vmhgfs", 0xBACBACBC, onVirtualHost}, {"vmhgfs-fuse", 0, onVirtualHost}, // [1]

	{"fuse", 0x65735546, inUserSpace}, // [3]
	{"overlay", 0x794C7630, inLayers}, {"aufs", 0x61756673, inLayers},
	{"fuse-overlayfs", 0, inLayers},
}

// placeOf returns the place of a type. An unknown type fuse.x is in user space: its process may store the
// bytes anywhere. fuseblk is FUSE on a block device.
func placeOf(fsType string) place {
	name, fuse := strings.CutPrefix(fsType, "fuse.")
	for _, f := range filesystems {
		if f.name == name {
			return f.place
		}
	}
	if fuse {
		return inUserSpace
	}
	return onDevice
}

// InMemory reports whether the files of a type are in memory.
func InMemory(fsType string) bool { return placeOf(fsType) == inMemory }

// FUSE reports whether a type is a FUSE filesystem.
func FUSE(fsType string) bool {
	kind, _, _ := strings.Cut(fsType, ".")
	return kind == "fuse" || kind == "fuseblk" || kind == "virtiofs"
}

// typeOf returns the type's name for a number of statfs(2).
func typeOf(magic uint32) string {
	for _, f := range filesystems {
		if f.magic == magic && magic != 0 {
			return f.name
		}
	}
	return fmt.Sprintf("unknown type %#x", magic)
}

// FilesystemOf describes the filesystem of path, or of the nearest existing directory above it.
func FilesystemOf(path string) (Filesystem, error) {
	at, err := Existing(path)
	if err != nil {
		return Filesystem{}, err
	}
	f, err := statfs(at)
	if err != nil {
		return f, fmt.Errorf("ask for the filesystem of %s: %w", at, err)
	}
	f.place = placeOf(f.Type)
	f.Memory, f.Shared = f.place == inMemory, f.place.shared()
	f.ReadOnly = errors.Is(unix.Access(at, unix.W_OK), unix.EROFS)
	return f, nil
}

// Existing returns path, or the nearest existing directory above it.
func Existing(path string) (string, error) {
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

// uninterrupted repeats a call after EINTR: the Go runtime's signals interrupt calls on network
// filesystems.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// DeviceID returns the kernel's device number of the filesystem of path, or of the nearest existing
// directory above it. All processes of this boot get the same number for a filesystem; "" is unknown.
func DeviceID(path string) string {
	var on unix.Stat_t
	at, err := Existing(path)
	if err != nil || unix.Stat(at, &on) != nil {
		return ""
	}
	return strconv.FormatUint(uint64(on.Dev), 16)
}

// Identity identifies the filesystem of a directory to other processes and hosts.
type Identity struct {
	Device string // see DeviceID
	// For a filesystem that other hosts can mount: its type and source in the mount table, and f_fsid of
	// statfs(2), which is 0 for many types. Otherwise empty.
	Type, Source, ID string
}

// IdentityOf returns the identity of the filesystem of path, or of the nearest existing directory above
// it.
func IdentityOf(path string) Identity {
	i := Identity{Device: DeviceID(path)}
	f, err := FilesystemOf(path)
	if err == nil && (f.place == onNetwork || f.place == onCluster || f.place == onVirtualHost) {
		i.Type, i.Source, i.ID = f.Type, f.source, f.id
	}
	return i
}

// SameFilesystem reports whether two paths, or the nearest existing directories above them, are known to
// be on one filesystem.
func SameFilesystem(a, b string) bool {
	on := DeviceID(a)
	return on != "" && on == DeviceID(b)
}

// whyNoDevice returns why a mount has no block device.
func (m Mount) whyNoDevice() string {
	kind, _, _ := strings.Cut(m.Type, ".") // fuse.sshfs is FUSE
	if kind == "" {
		return "the directory belongs to no mount that this process can see"
	}
	upper, ok := m.superOption("upperdir")
	if !ok {
		upper = "another filesystem"
	}
	return fmt.Sprintf(whyNone[placeOf(kind)], m.Type, m.Source, upper)
}
