package filetier_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/filetier"
	"kvbench/tiers/privtest"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/workdir"
	"kvbench/tracing/host"
)

// A full disk fails the write, and the failed write frees its space.
func TestAFullDiskIsReportedAndLeavesRoomAfterwards(t *testing.T) {
	fs := privtest.LoopFS(t, 32, privtest.LoopOptions{})
	require.NoError(t, os.WriteFile(fs.Dir+"/mine.npy", []byte("mine"), 0o644))
	for _, cfg := range []filetier.Config{{Direct: true}, {},
		{Direct: true, Layout: tiers.Layout{Kind: tiers.LayoutPacked, Places: 4}}} {
		d, err := workdir.Open(t.Context(), workdir.Options{CacheDir: fs.Dir})
		require.NoError(t, err)
		cfg.Dir = d
		tier := tiertest.Files(t, cfg)
		require.Equal(t, cfg.Direct, tier.Direct())
		assert.Empty(t, tier.Warnings(), "a hole frees what it should")
		x := tiertest.Transfer(t, 4<<20, 2)
		free, err := host.FilesystemOf(d.Path())
		require.NoError(t, err)
		assert.Equal(t, "ext4", free.Type)
		assert.False(t, free.Root)

		var failed error
		for i := 0; failed == nil && i < 20; i++ {
			_, _, failed = x.Write(t.Context(), tier, nil,
				tiers.Object{Key: fmt.Sprint("k", i), Size: 4<<20 + 1})
		}
		require.ErrorIs(t, failed, unix.ENOSPC)
		assert.ErrorContains(t, failed, "-storage-capacity-gb")
		assert.ErrorContains(t, failed, fs.Dir)
		require.NoError(t, tier.Remove(t.Context(), tiers.Object{Key: "k0"}))
		_, _, err = x.Write(t.Context(), tier, nil, tiers.Object{Key: "again", Size: 4 << 20})
		assert.NoError(t, err, "the failed write left nothing, so one removal makes room")
		require.NoError(t, tier.Close())
		require.NoError(t, d.Close())
	}
	text, err := os.ReadFile(fs.Dir + "/mine.npy")
	require.NoError(t, err)
	assert.Equal(t, "mine", string(text))
}

func TestAReadOnlyFilesystemIsToldAndRecovered(t *testing.T) {
	fs := privtest.LoopFS(t, 32, privtest.LoopOptions{})
	remount := func(flags uintptr) {
		require.NoError(t, unix.Mount("", fs.Dir, "", unix.MS_REMOUNT|flags, ""))
	}
	d, err := workdir.Open(t.Context(), workdir.Options{CacheDir: fs.Dir})
	require.NoError(t, err)
	tier := tiertest.Files(t, filetier.Config{Dir: d, Direct: true})
	x := tiertest.Transfer(t, 1<<20, 1)
	o := tiers.Object{Key: "k", Size: 2 << 20}
	_, _, err = x.Write(t.Context(), tier, nil, o)
	require.NoError(t, err)

	remount(unix.MS_RDONLY) // possible during a run: no file is open for writing between entries
	_, _, err = x.Write(t.Context(), tier, nil, tiers.Object{Key: "k2", Size: 2 << 20})
	require.ErrorIs(t, err, unix.EROFS)
	assert.ErrorContains(t, err, "read-only")
	_, _, err = x.Read(t.Context(), tier, nil, o)
	require.NoError(t, err)
	err = d.Close()
	require.ErrorIs(t, err, unix.EROFS)
	assert.ErrorContains(t, err, "the next start tries again")

	_, err = workdir.Open(t.Context(), workdir.Options{CacheDir: fs.Dir})
	require.ErrorIs(t, err, unix.EROFS)
	assert.ErrorContains(t, err, "read-only")
	assert.ErrorContains(t, err, fs.Dir)
	remount(0)
	d, err = workdir.Open(t.Context(), workdir.Options{CacheDir: fs.Dir})
	require.NoError(t, err)
	assert.Equal(t, 1, d.Reclaimed().Files)
	require.NoError(t, d.Close())
	assert.NoDirExists(t, fs.Dir+"/rank_0")
}

func TestAMemoryFilesystemIsWarnedAbout(t *testing.T) {
	fs := privtest.LoopFS(t, 32, privtest.LoopOptions{})
	memory := filepath.Dir(fs.BackingFile) // the tmpfs under the loop device
	dir := memory + "/cache"
	d, err := workdir.Open(t.Context(), workdir.Options{CacheDir: dir})
	require.NoError(t, err)
	tier := tiertest.Files(t, filetier.Config{Dir: d, Direct: true})
	all := strings.Join(tier.Warnings(), "\n")
	assert.Contains(t, all, "this measures memory")
	assert.True(t, strings.Contains(all, "not done: tmpfs keeps everything in memory") ||
		strings.Contains(all, "buffered I/O instead"), all)
	x := tiertest.Transfer(t, chunk, 2)
	o := tiers.Object{Key: "k", Size: 100_000}
	_, _, err = x.Write(t.Context(), tier, nil, o)
	require.NoError(t, err)
	_, _, err = x.Read(t.Context(), tier, nil, o)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	assert.NoDirExists(t, dir)
}

func TestADirectoryWithoutPermissionIsTold(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o555))
	if os.Geteuid() == 0 { // root may write everywhere: this thread drops that for files
		runtime.LockOSThread() // it ends with the test
		_, err := unix.SetfsuidRetUid(65534)
		require.NoError(t, err)
		defer func() { _, _ = unix.SetfsuidRetUid(0) }()
	}
	_, err := workdir.Open(t.Context(), workdir.Options{CacheDir: dir + "/cache"})
	require.ErrorIs(t, err, unix.EACCES)
	assert.ErrorContains(t, err, "choose a -cache-dir that it owns")
}
