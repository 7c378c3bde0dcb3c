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
