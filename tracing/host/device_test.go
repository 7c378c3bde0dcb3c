package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBackingDeviceOfAMissingPath(t *testing.T) {
	if noKernelStatistics != "" {
		t.Skip(noKernelStatistics)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := BackingDevice(missing)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "find the block device behind "+missing)
}

// TestTogether: equal devices count once, different devices add up, and a Reason of one device applies to
// all.
func TestTogether(t *testing.T) {
	one := Disk{Name: "loop1", SysPath: "/sys/loop1"}
	two := Disk{Name: "loop2", SysPath: "/sys/loop2"}
	a := Device{Disk: one, counted: []Disk{one}, Note: "a loop device"}
	b := Device{Disk: two, counted: []Disk{two}, Note: "a loop device"}
	assert.Equal(t, a, Together(a, a))
	all := Together(a, b, a)
	assert.Equal(t, "loop1+loop2", all.Title())
	assert.Equal(t, []Disk{one, two}, all.counted)
	assert.Equal(t, "a loop device", all.Note)
	assert.Empty(t, all.Reason)
	all = Together(a, Device{Reason: "tmpfs keeps its files in memory"})
	assert.Equal(t, "tmpfs keeps its files in memory", all.Reason)
	assert.Equal(t, []string{"loop1"}, all.Members, "which can be traced all the same")
}
