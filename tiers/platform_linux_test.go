package tiers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSmapsCountsOnlyTheRange(t *testing.T) {
	const text = `7f0000000000-7f0000800000 rw-p 00000000 00:00 0 
Size:               8192 kB
AnonHugePages:      6144 kB
VmFlags: rd wr
7f0000800000-7f0000a00000 rw-p 00000000 00:00 0                          [anon: x-y]
AnonHugePages:      2048 kB
55e000000000-55e000001000 r-xp 00000000 fe:00 12 /usr/bin/some-thing
AnonHugePages:         0 kB
`
	got, err := parseSmaps(strings.NewReader(text), 0x7f0000600000, 4<<20)
	require.NoError(t, err)
	assert.EqualValues(t, 4<<20, got)
	got, err = parseSmaps(strings.NewReader(text), 0x7f0000000000, 8<<20)
	require.NoError(t, err)
	assert.EqualValues(t, 6<<20, got)
	_, err = parseSmaps(strings.NewReader("AnonHugePages: many kB\n"), 0, 1)
	assert.Error(t, err)
}

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
	shm, err := FilesystemInfo("/dev/shm/not/there")
	require.NoError(t, err)
	if shm.Type == "tmpfs" {
		assert.True(t, shm.Memory)
		assert.False(t, shm.Root)
	}
	root, err := FilesystemInfo("/")
	require.NoError(t, err)
	assert.True(t, root.Root)
	assert.Positive(t, root.Total)
	proc, err := FilesystemInfo("/proc/self")
	require.NoError(t, err)
	assert.Equal(t, "proc", proc.Type)
}

func TestDirectIOIsIgnoredInMemory(t *testing.T) {
	assert.Contains(t, directIgnored(Filesystem{Type: "tmpfs"}), "memory")
	assert.Empty(t, directIgnored(Filesystem{Type: "ext4"}))
}
