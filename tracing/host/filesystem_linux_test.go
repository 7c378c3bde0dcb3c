package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFilesystemOfKnowsMemoryRootAndMissingDirectories(t *testing.T) {
	shm, err := FilesystemOf("/dev/shm/not/there")
	require.NoError(t, err)
	if shm.Type == "tmpfs" {
		assert.True(t, shm.Memory)
		assert.False(t, shm.Root)
	}
	root, err := FilesystemOf("/")
	require.NoError(t, err)
	assert.True(t, root.Root)
	assert.Positive(t, root.Total)
	proc, err := FilesystemOf("/proc/self")
	require.NoError(t, err)
	assert.Equal(t, "proc", proc.Type)
}

// A shared filesystem needs a given capacity: 95 % of a cluster's free space is too much for a run.
func TestWhichFilesystemsAreShared(t *testing.T) {
	for _, name := range []string{"nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs",
		"beegfs_nodev", "ceph", "fuse.ceph-fuse", "wekafs", "orangefs", "pvfs2", "panfs", "quobyte",
		"fuse.quobyte", "fuse.daos", "fuse.glusterfs", "fuse.juicefs", "fuse.s3fs",
		"fuse.mount-s3", "fuse.sshfs", "ocfs2", "gfs2", "9p", "virtiofs", "vboxsf",
		"fuse.unknown-type", "fuse", "overlay", "fuse.hf3fs"} {
		assert.True(t, placeOf(name).shared(), name)
	}
	for _, name := range []string{"ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "fuseblk",
		"tmpfs", "ntfs3", "jfs", "unknown-type"} {
		assert.False(t, placeOf(name).shared(), name)
	}
	assert.Equal(t, inMemory, placeOf("tmpfs"))
	// In a sandbox without a mount table only the kernel's numbers are known.
	for magic, name := range map[uint32]string{0x6969: "nfs", 0x0BD00BD0: "lustre",
		0x47504653: "gpfs", 0x65735546: "fuse", 0x19830326: "beegfs", 0x00C36400: "ceph",
		0xEF53: "ext4", 0x01021994: "tmpfs", 0x20030528: "orangefs", 0x01021997: "9p"} {
		assert.Equal(t, name, typeOf(magic))
	}
	assert.Equal(t, "unknown type 0xabc", typeOf(0xabc))
	for _, name := range []string{"fuse", "fuse.sshfs", "fuseblk", "virtiofs"} {
		assert.True(t, FUSE(name), name)
	}
	for _, name := range []string{"fusectl", "ext4", "overlay", ""} {
		assert.False(t, FUSE(name), name)
	}
}

// Names and numbers in the table are unique.
func TestFilesystemsAreListedOnce(t *testing.T) {
	names, numbers := map[string]bool{}, map[uint32]string{}
	for _, f := range filesystems {
		assert.False(t, names[f.name], f.name)
		names[f.name] = true
		if f.magic != 0 {
			assert.Empty(t, numbers[f.magic], "%s has the number of another", f.name)
			numbers[f.magic] = f.name
		}
	}
}

// TestIdentityOfALocalFilesystem: no other host can mount it, so it has no identity for other hosts.
func TestIdentityOfALocalFilesystem(t *testing.T) {
	dir := t.TempDir()
	assert.Equal(t, Identity{Device: DeviceID(dir)}, IdentityOf(dir+"/not/there"))
	assert.Equal(t, Identity{Device: DeviceID("/proc")}, IdentityOf("/proc"))
}
