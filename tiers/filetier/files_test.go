package filetier_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/filetier"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/workdir"
)

func theFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(dir + "/??/*")
	require.NoError(t, err)
	return files
}

// onDisk returns the bytes that the files take, according to the filesystem.
func onDisk(t testing.TB, dir string) (bytes int64) {
	t.Helper()
	for _, f := range theFiles(t, dir) {
		var s unix.Stat_t
		require.NoError(t, unix.Stat(f, &s))
		bytes += 512 * s.Blocks
	}
	return bytes
}

// A deletion frees exactly the entry's blocks when it returns. The last deletion removes the file.
func TestPackedSpaceIsFreeWhenRemoveReturns(t *testing.T) {
	dir := tiertest.Dir(t)
	tier := tiertest.Files(t, filetier.Config{Dir: dir, Direct: true,
		Layout: tiers.Layout{Kind: tiers.LayoutPacked, Places: 8}})
	x := tiertest.Transfer(t, chunk, 1)
	list := blocks("s", block, block, 5000, block, block, 3*chunk+1, block, block, block, block, 1,
		block)
	writeRuns(t, x, tier, list)
	rand.New(rand.NewPCG(5, 6)).Shuffle(len(list),
		func(i, j int) { list[i], list[j] = list[j], list[i] })
	for at, o := range list {
		held, waste := tier.Footprint()
		assert.InDelta(t, held+waste, onDisk(t, dir.Path()), 16<<10,
			"extent blocks of the filesystem aside")
		if at > 0 {
			_, _, err := x.Read(t.Context(), tier, nil, list[at])
			require.NoError(t, err, "the others are as they were")
		}
		require.NoError(t, tier.Remove(t.Context(), o))
	}
	held, waste := tier.Footprint()
	assert.Zero(t, held+waste)
	assert.Empty(t, theFiles(t, dir.Path()))
}

// The files of every layout are kept.
func TestKeptFilesStay(t *testing.T) {
	for kind, want := range map[string]int{
		tiers.LayoutFiles: 3, tiers.LayoutSlots: 1, tiers.LayoutPacked: 2, tiers.LayoutNamed: 3,
	} {
		cache := t.TempDir()
		dir, err := workdir.Open(t.Context(), workdir.Options{CacheDir: cache, Keep: true})
		require.NoError(t, err)
		l := tiers.Layout{Kind: kind, Bytes: block, Places: 2}
		tier := tiertest.Files(t, filetier.Config{Dir: dir, Layout: l, Capacity: 10 * block})
		x := tiertest.Transfer(t, chunk, 1)
		for _, o := range blocks("k", block, block, block) {
			_, _, err := x.Write(t.Context(), tier, nil, o)
			require.NoError(t, err)
		}
		require.NoError(t, tier.Close())
		require.NoError(t, dir.Close())
		assert.Len(t, theFiles(t, dir.Path()), want, "layout %s", kind)
		dir, err = workdir.Open(t.Context(), workdir.Options{CacheDir: cache})
		require.NoError(t, err)
		assert.Equal(t, want, dir.Reclaimed().Files)
		require.NoError(t, dir.Close())
	}
}

func TestLayoutsAreChecked(t *testing.T) {
	dir := tiertest.Dir(t)
	for _, l := range []tiers.Layout{{Kind: tiers.LayoutSlots},
		{Kind: tiers.LayoutPacked, Places: 1}, {Kind: "none"}, {Kind: "kvbm-slots"}} {
		_, err := filetier.New(t.Context(), filetier.Config{Dir: dir, Layout: l, Capacity: 1 << 20,
			Engine: tiertest.Psync(t)})
		assert.Error(t, err, "%+v", l)
	}
}

// After LeaveFiles only the work directory removes files.
func TestFilesAreLeftToTheDirectory(t *testing.T) {
	for _, layout := range []tiers.Layout{{}, {Kind: tiers.LayoutPacked, Places: 2}} {
		dir := tiertest.Dir(t)
		tier := tiertest.Files(t, filetier.Config{Dir: dir, Layout: layout})
		x := tiertest.Transfer(t, tiertest.Chunk, 2)
		files := func() int {
			all, err := filepath.Glob(filepath.Join(dir.Path(), "*", "*-*"))
			require.NoError(t, err)
			return len(all)
		}
		a, b := tiers.Object{Key: "a", Size: 10_000}, tiers.Object{Key: "b", Size: 10_000}
		for _, o := range []tiers.Object{a, b} {
			_, _, err := x.Write(t.Context(), tier, nil, o)
			require.NoError(t, err)
		}
		before := files()
		tier.LeaveFiles()
		require.NoError(t, tier.Remove(t.Context(), a, b))
		held, waste := tier.Footprint()
		assert.Equal(t, []int64{0, 0}, []int64{held, waste})
		assert.Equal(t, before, files())
		w, err := tier.Create(t.Context(), tiers.Object{Key: "c", Size: 10_000})
		require.NoError(t, err)
		require.NoError(t, w.Abort())
		assert.Greater(t, files(), before, "so does what was given up")
		require.NoError(t, tier.Close())
		require.NoError(t, dir.Close())
		assert.Zero(t, files())
	}
}
