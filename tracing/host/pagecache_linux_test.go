package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Both system calls agree on a file that was just written and is in the cache, and on a file that was
// dropped from it (on a filesystem in memory it stays).
func TestCachedBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Write(make([]byte, 100_000))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	same := func() int64 {
		queried, err := CachedBytes(path)
		require.NoError(t, err)
		in, err := os.Open(path)
		require.NoError(t, err)
		defer in.Close()
		counted, err := resident(in)
		require.NoError(t, err)
		assert.Equal(t, counted, queried)
		return queried
	}
	page := int64(os.Getpagesize())
	whole := (100_000 + page - 1) / page * page
	assert.Equal(t, whole, same())
	require.NoError(t, DropFromCache(path))
	if fs, err := FilesystemOf(path); err == nil && !fs.Memory {
		assert.Zero(t, same())
	}
	_, err = CachedBytes(path + "x")
	assert.ErrorIs(t, err, os.ErrNotExist)
}
