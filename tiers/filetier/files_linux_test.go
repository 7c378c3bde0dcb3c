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
	_, err = filetier.New(t.Context(), filetier.Config{Dir: d, Engine: engine,
		Layout: tiers.Layout{Kind: tiers.LayoutPacked, Places: 4}})
	require.ErrorAs(t, err, new(*tiers.UnsupportedError))
	assert.ErrorContains(t, err, d.Path())
	assert.ErrorContains(t, err, "-layout block")
	assert.Empty(t, theFiles(t, d.Path()))
	for _, l := range []tiers.Layout{{}, {Kind: tiers.LayoutSlots, Bytes: block}} {
		tier, err := filetier.New(t.Context(), filetier.Config{Dir: d, Engine: engine, Layout: l,
			Capacity: 1 << 20})
		require.NoError(t, err, "layouts that the message names")
		require.NoError(t, tier.Close())
	}
	require.NoError(t, d.Close())
}
