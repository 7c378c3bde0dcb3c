package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBackingDeviceHere asks the machine the test runs on.
func TestBackingDeviceHere(t *testing.T) {
	dir, err := os.Getwd()
	require.NoError(t, err)
	d, err := BackingDevice(dir)
	require.NoError(t, err)
	if d.Reason != "" {
		t.Skipf("no block device behind %s: %s", dir, d.Reason)
	}
	assert.NotEmpty(t, d.Name)
	assert.NotEmpty(t, d.Filesystem)
	s, err := d.ReadStat()
	require.NoError(t, err)
	assert.Positive(t, s.ReadIOs, "a mounted filesystem has at least read its superblock")
}

func TestBackingDeviceOfAMissingPath(t *testing.T) {
	if noKernelStatistics != "" {
		t.Skip(noKernelStatistics)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := BackingDevice(missing)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "find the block device behind "+missing)
}
