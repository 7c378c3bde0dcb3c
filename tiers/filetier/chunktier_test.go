package filetier

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/workdir"
)

// An entry of several files whose second one cannot be closed is gone altogether.
func TestChunkFilesAreCommittedTogether(t *testing.T) {
	dir, err := workdir.Open(workdir.Options{CacheDir: t.TempDir()})
	require.NoError(t, err)
	tier, err := NewChunkTier(dir, FileOptions{}, 4096)
	require.NoError(t, err)
	o := tiers.Object{Key: "k", Size: 3 * 4096}
	w, err := tier.Create(t.Context(), o)
	require.NoError(t, err)
	f := w.(*chunkWriter).files[1]
	require.NoError(t, unix.Close(f.fd))
	f.fd = 1 << 30 // nobody's
	require.ErrorIs(t, w.Commit(t.Context()), unix.EBADF)
	require.NoError(t, w.Abort())
	_, err = tier.Open(t.Context(), o)
	require.ErrorIs(t, err, tiers.ErrNotFound)
	files, err := filepath.Glob(dir.Path() + "/??/*")
	require.NoError(t, err)
	assert.Empty(t, files)
	w, err = tier.Create(t.Context(), o)
	require.NoError(t, err, "nothing is in the way")
	require.NoError(t, w.Abort())
	require.NoError(t, dir.Close())
}
