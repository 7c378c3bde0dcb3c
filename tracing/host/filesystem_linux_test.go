package host

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMountTypeIsFoundByDevice(t *testing.T) {
	const text = `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:21 / /proc rw shared:5 - proc proc rw
30 22 0:55 / /mnt/a\040b rw shared:7 master:1 - fuse.sshfs host:/x rw
broken line
`
	assert.Equal(t, "ext4", parseMountType(strings.NewReader(text), 254, 0))
	assert.Equal(t, "fuse.sshfs", parseMountType(strings.NewReader(text), 0, 55))
	assert.Empty(t, parseMountType(strings.NewReader(text), 9, 9))
}

func TestFilesystemInfoKnowsMemoryRootAndMissingDirectories(t *testing.T) {
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
