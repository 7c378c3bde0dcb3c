package filetier

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/workdir"
)

// An object of several files whose second one cannot be closed is gone altogether. In the package,
// because nothing but a descriptor that is not ours any more makes closing fail.
func TestTheFilesOfAnObjectAreCommittedTogether(t *testing.T) {
	dir, err := workdir.Open(t.Context(), workdir.Options{CacheDir: t.TempDir(), Nonce: "test"})
	require.NoError(t, err)
	engine := ioengine.NewPsync(func() time.Duration { return 0 })
	layout := tiers.Layout{Kind: tiers.LayoutChunks, Bytes: 4096}
	tier, err := New(Config{Dir: dir, Engine: engine, Layout: layout, Extent: 64 << 10})
	require.NoError(t, err)

	o := tiers.Object{Key: "k", Size: 3 * 4096}
	w, err := tier.Create(t.Context(), o)
	require.NoError(t, err)
	fds := w.(*extent).f.making.fds
	require.Len(t, fds, 3)
	require.NoError(t, unix.Close(fds[1]))
	fds[1] = 1 << 30 // nobody's
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
	require.NoError(t, tier.Close())
	require.NoError(t, engine.Close(t.Context()))
	require.NoError(t, dir.Close())
}
