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
	for _, name := range []string{"nfs4", "ceph", "fuse.ceph-fuse", "fuse.mount-s3", "ocfs2", "9p",
		"virtiofs", "fuse.unknown-type", "fuse", "overlay"} {
		assert.True(t, placeOf(name).shared(), name)
	}
	for _, name := range []string{"ext4", "zfs", "fuseblk", "tmpfs", "unknown-type"} {
		assert.False(t, placeOf(name).shared(), name)
	}
	assert.Equal(t, inMemory, placeOf("tmpfs"))
	// In a sandbox without a mount table only the kernel's numbers are known.
	assert.Equal(t, "nfs", typeOf(0x6969))
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
