package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers/privtest"
)

// TestCountersOfALoopDevice overwrites and reads a file with direct I/O and expects the device to count
// exactly these bytes.
func TestCountersOfALoopDevice(t *testing.T) {
	l := privtest.LoopFS(t, 32, privtest.LoopOptions{NoJournal: true})
	d, err := BackingDevice(l.Dir)
	require.NoError(t, err)
	require.Empty(t, d.Reason)
	assert.Equal(t, l.Name, d.Name)
	assert.Equal(t, [2]uint32{l.Major, l.Minor}, [2]uint32{d.Major, d.Minor})
	assert.Equal(t, l.BackingFile, d.BackingFile)
	assert.Equal(t, "ext4", d.Filesystem)
	assert.Equal(t, l.Dir, d.Mount.Point)
	assert.Equal(t, l.Path, d.Mount.Source)

	const size = 8 << 20
	buffer, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE) // page-aligned
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Munmap(buffer) })
	file, err := os.OpenFile(filepath.Join(l.Dir, "file"), os.O_RDWR|os.O_CREATE|unix.O_DIRECT,
		0o644)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	_, err = file.WriteAt(buffer, 0)
	require.NoError(t, err)
	// Allocation and metadata are written before, not during.
	require.NoError(t, unix.Syncfs(int(file.Fd())))

	moved := func(act func([]byte, int64) (int, error)) BlockStat {
		before, err := d.ReadStat()
		require.NoError(t, err)
		n, err := act(buffer, 0)
		require.NoError(t, err)
		require.Equal(t, size, n)
		after, err := d.ReadStat()
		require.NoError(t, err)
		return after.Sub(before)
	}
	written := moved(file.WriteAt)
	assert.EqualValues(t, size, written.WriteBytes)
	assert.Zero(t, written.ReadBytes)
	assert.Positive(t, written.WriteIOs)
	read := moved(file.ReadAt)
	assert.EqualValues(t, size, read.ReadBytes)
	assert.Zero(t, read.WriteBytes)
	assert.Positive(t, read.ReadIOs)
}
