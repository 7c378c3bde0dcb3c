package tiertest_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/faults"
	"kvbench/tiers/filetier"
	"kvbench/tiers/workdir"
)

func theFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(dir + "/??/*")
	require.NoError(t, err)
	return files
}

// onDisk is what the files take, says the filesystem.
func onDisk(t testing.TB, dir string) (bytes int64) {
	t.Helper()
	for _, f := range theFiles(t, dir) {
		var s unix.Stat_t
		require.NoError(t, unix.Stat(f, &s))
		bytes += 512 * s.Blocks
	}
	return bytes
}

// Deletions free exactly the entry's blocks when they return, and the file with the last of them.
func TestPackedSpaceIsFreeWhenRemoveReturns(t *testing.T) {
	for _, grouped := range []bool{false, true} {
		dir := ownedDir(t)
		tier, err := filetier.NewPackTier(dir, filetier.FileOptions{Direct: true}, filetier.PackOptions{Places: 8, Grouped: grouped})
		skipWithoutHoles(t, err)
		require.NoError(t, err)
		if !tier.Direct() {
			t.Skipf("no direct I/O here: %v", tier.Warnings())
		}
		x := mover(t, chunk, 1)
		list := blocks("s", block, block, 5000, block, block, 3*chunk+1, block, block, block, block, 1, block)
		writeRuns(t, x, tier, list)
		rand.New(rand.NewPCG(5, 6)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for at, o := range list {
			held, waste := tier.Footprint()
			assert.InDelta(t, held+waste, onDisk(t, dir.Path()), 16<<10, "extent blocks of the filesystem aside")
			if at > 0 {
				_, err := x.Read(t.Context(), tier, list[at], nil)
				require.NoError(t, err, "the others are as they were")
			}
			require.NoError(t, tier.Remove(t.Context(), o))
		}
		held, waste := tier.Footprint()
		assert.Zero(t, held+waste)
		assert.Empty(t, theFiles(t, dir.Path()))
		require.NoError(t, tier.Close())
	}
}

// An entry of the chunk layout is exactly its files, and goes with all of them.
func TestChunkFilesAreTheEntry(t *testing.T) {
	dir := ownedDir(t)
	tier, err := filetier.NewChunkTier(dir, filetier.FileOptions{Direct: true}, block)
	require.NoError(t, err)
	f := faults.Wrap(tier, nil)
	x := mover(t, chunk, 2)
	o := tiers.Object{Key: "blk/x/1", Gen: 1, Size: 3*block + 5000}
	_, err = x.Write(t.Context(), f, o, nil)
	require.NoError(t, err)
	files := theFiles(t, dir.Path())
	require.Len(t, files, 4)
	assert.EqualValues(t, 3*block+8192, onDisk(t, dir.Path()))
	f.SetHook(faults.On(faults.Commit, 0, unix.EIO))
	_, err = x.Write(t.Context(), f, tiers.Object{Key: "blk/x/2", Size: 2 * block}, nil)
	require.ErrorIs(t, err, unix.EIO)
	assert.Len(t, theFiles(t, dir.Path()), 4, "the failed one left nothing")
	f.SetHook(nil)
	require.NoError(t, os.Remove(files[2]))
	_, err = x.Read(t.Context(), tier, o, nil)
	require.ErrorIs(t, err, tiers.ErrNotFound)
	require.ErrorIs(t, tier.Remove(t.Context(), o), tiers.ErrNotFound)
	assert.Empty(t, theFiles(t, dir.Path()), "the others went")
}

// Kept files are those of every layout.
func TestKeptFilesStay(t *testing.T) {
	for kind, want := range map[tiers.LayoutKind]int{
		tiers.LayoutFiles: 3, tiers.LayoutSlots: 1, tiers.LayoutPacked: 2, tiers.LayoutGrouped: 3, tiers.LayoutChunks: 6,
	} {
		cache := t.TempDir()
		dir, err := workdir.Open(workdir.Options{CacheDir: cache, Keep: true})
		require.NoError(t, err)
		l := tiers.Layout{Kind: kind, Bytes: block, Places: 2}
		if kind == tiers.LayoutChunks {
			l.Bytes = block / 2
		}
		tier, _, err := filetier.NewStorageTier(dir, filetier.FileOptions{}, l, 10*block)
		skipWithoutHoles(t, err)
		require.NoError(t, err)
		x := mover(t, chunk, 1)
		for _, o := range blocks("k", block, block, block) {
			_, err := x.Write(t.Context(), tier, o, nil)
			require.NoError(t, err)
		}
		require.NoError(t, tier.Close())
		require.NoError(t, dir.Close())
		assert.Len(t, theFiles(t, dir.Path()), want, "layout %d", kind)
		dir, err = workdir.Open(workdir.Options{CacheDir: cache})
		require.NoError(t, err)
		assert.Equal(t, want, dir.Reclaimed().Files)
		require.NoError(t, dir.Close())
	}
}

func TestLayoutsAreChecked(t *testing.T) {
	dir := ownedDir(t)
	for _, l := range []tiers.Layout{{Kind: tiers.LayoutSlots}, {Kind: tiers.LayoutPacked, Places: 1}, {Kind: tiers.LayoutChunks}, {Kind: 99}} {
		_, _, err := filetier.NewStorageTier(dir, filetier.FileOptions{}, l, 1<<20)
		assert.Error(t, err, "%+v", l)
	}
}
