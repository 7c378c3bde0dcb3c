package filetier_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/filetier"
	"kvbench/tiers/privtest"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/workdir"
)

// ramfs is a filesystem that cannot free a part of a file.
func TestPackedFilesNeedHoles(t *testing.T) {
	privtest.Root(t)
	mount := t.TempDir()
	privtest.Need(t, unix.Mount("ramfs", mount, "ramfs", 0, ""))
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(mount, 0)) })
	d, err := workdir.Open(t.Context(), workdir.Options{CacheDir: mount})
	require.NoError(t, err)
	engine := tiertest.Psync(t)
	for _, l := range []tiers.Layout{{Kind: tiers.LayoutPacked, Places: 4},
		{Kind: tiers.LayoutGrouped, Places: 4}} {
		_, err = filetier.New(filetier.Config{Dir: d, Engine: engine, Layout: l})
		require.ErrorIs(t, err, tiers.ErrNotSupported)
		assert.ErrorContains(t, err, d.Path())
		assert.ErrorContains(t, err, "-layout block")
		assert.Empty(t, theFiles(t, d.Path()))
	}
	for _, l := range []tiers.Layout{{}, {Kind: tiers.LayoutSlots, Bytes: block},
		{Kind: tiers.LayoutChunks, Bytes: block}} {
		tier, err := filetier.New(filetier.Config{Dir: d, Engine: engine, Layout: l,
			Capacity: 1 << 20})
		require.NoError(t, err, "layouts that the message names")
		require.NoError(t, tier.Close())
	}
	require.NoError(t, d.Close())
}

// A full disk is told by every layout, and what failed leaves its room.
func TestAFullDiskUnderEveryLayout(t *testing.T) {
	fs := privtest.LoopFS(t, 32, privtest.LoopOptions{})
	for _, l := range []tiers.Layout{
		{Kind: tiers.LayoutPacked, Places: 4}, {Kind: tiers.LayoutGrouped, Places: 4},
		{Kind: tiers.LayoutChunks, Bytes: 1 << 20},
	} {
		d, err := workdir.Open(t.Context(), workdir.Options{CacheDir: fs.Dir})
		require.NoError(t, err)
		tier := tiertest.Files(t, filetier.Config{Dir: d, Direct: true, Layout: l})
		require.True(t, tier.Direct())
		assert.Empty(t, tier.Warnings(), "a hole frees what it should")
		x := tiertest.Transfer(t, 4<<20, 1)
		list := make([]int64, 80)
		for i := range list {
			list[i] = 1<<20 + 1
		}
		objects := blocks("full", list...)
		at := 0
		for err = nil; err == nil; at++ {
			_, _, err = x.Write(t.Context(), tier, nil, objects[at])
		}
		at-- // the one that failed
		require.ErrorIs(t, err, unix.ENOSPC)
		assert.ErrorContains(t, err, "-storage-capacity-gb")
		require.Greater(t, at, 16)
		for _, o := range objects[at-3 : at] {
			require.NoError(t, tier.Remove(t.Context(), o))
		}
		_, _, err = x.Write(t.Context(), tier, nil, tiers.Object{Key: "again", Size: 2 << 20})
		assert.NoError(t, err, "the failed write left nothing, so removals make room")
		require.NoError(t, tier.Close())
		require.NoError(t, d.Close())
	}
}
