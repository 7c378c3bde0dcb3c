package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/tiers/privtest"
)

// TestFilesystems runs on each filesystem of the table. A filesystem that makes direct writes through the page
// cache is reported as buffered, has a warning, and its numbers must not be quoted.
func TestFilesystems(t *testing.T) {
	t.Parallel()
	loop := func(mib int, opt privtest.LoopOptions) func(testing.TB) string {
		return func(t testing.TB) string { return privtest.LoopFS(t, mib, opt).Dir }
	}
	btrfs := func(mount string) privtest.LoopOptions { return privtest.LoopOptions{Type: "btrfs", Mount: mount} }
	const pageCache = "writes pass through the page cache (nr_dirtied of /proc/vmstat counts them). Direct writes need " +
		"chattr +C on the empty directory (btrfs), a mount without data=journal (ext4), or losetup --direct-io=on (loop)"
	for name, c := range map[string]struct {
		dir    func(testing.TB) string
		cached string // why direct I/O is not done
		layout string // of an engine
	}{
		"ext4":                      {loop(128, privtest.LoopOptions{}), "", ""},
		"ext4, blocks of 1 KiB":     {loop(128, privtest.LoopOptions{BlockBytes: 1 << 10}), "", ""},
		"ext4, sectors of 4 KiB":    {loop(128, privtest.LoopOptions{BlockBytes: 4 << 10, SectorBytes: 4 << 10}), "", ""},
		"ext4, data=journal":        {loop(128, privtest.LoopOptions{Mount: "data=journal"}), pageCache, ""},
		"xfs":                       {loop(300, privtest.LoopOptions{Type: "xfs"}), "", ""},
		"btrfs":                     {loop(256, btrfs("")), pageCache, ""},
		"btrfs, slots of an engine": {loop(256, btrfs("")), pageCache, "kvbm-slots"},
		"btrfs, nodatasum":          {loop(256, btrfs("nodatasum")), "", ""},
		"btrfs, nodatacow":          {loop(256, btrfs("nodatacow")), "", ""},
		"btrfs, chattr +C":          {withoutChecksums, "", ""},
		"overlay on ext4":           {overlay, "", ""},
		"FUSE":                      {func(t testing.TB) string { dir, _ := privtest.FuseDir(t); return dir }, "", ""},
		"tmpfs": {func(t testing.TB) string { return privtest.LoopFS(t, 128, privtest.LoopOptions{}).Memory },
			"tmpfs keeps everything in memory", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary(t)
			b := newBench(t)
			b.cache = filepath.Join(c.dir(t), "cache")
			load := append(b.places(), "-test.bench=StorageCeiling/op=write", "-ceiling-size-gb=0.03", "-workers=2")
			if c.layout != "" {
				load = append(append(b.places(), b.micro()...), "-test.bench=PrefillOnly", "-layout="+c.layout)
			}
			b.ok(append(load, "-division=open", "-test.benchtime=16x", "-storage-capacity-gb=0.05")...)
			r := theResult(t, b.results)
			mode, warnings := "direct", strings.Join(r.Warnings, "\n")
			if c.cached != "" {
				mode = "buffered"
				assert.Contains(t, warnings, "is accepted and not done: "+c.cached)
			} else {
				assert.NotContains(t, warnings, "not done")
			}
			assert.Equal(t, mode, r.IO.Mode)
			quote := strings.Join(report.Quote([]*result.Result{r}).Below, "\n")
			assert.Equal(t, c.cached != "", strings.Contains(quote, "the filesystem accepts direct I/O and writes "+
				"through the page cache"), quote)
		})
	}
}

// withoutChecksums returns a directory on btrfs whose files have no checksums.
func withoutChecksums(t testing.TB) string {
	dir := filepath.Join(privtest.LoopFS(t, 256, privtest.LoopOptions{Type: "btrfs"}).Dir, "plain")
	require.NoError(t, os.Mkdir(dir, 0o755))
	out, err := exec.Command("chattr", "+C", dir).CombinedOutput()
	require.NoError(t, err, string(out))
	return dir
}

// overlay returns an overlay whose files lie on ext4.
func overlay(t testing.TB) string {
	below := privtest.LoopFS(t, 128, privtest.LoopOptions{}).Dir
	dir := t.TempDir()
	options := "lowerdir=" + dir
	for _, name := range []string{"upper", "work"} {
		require.NoError(t, os.Mkdir(filepath.Join(below, name), 0o755))
		options += "," + name + "dir=" + filepath.Join(below, name)
	}
	privtest.Need(t, unix.Mount("overlay", dir, "overlay", 0, options))
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(dir, 0)) })
	return dir
}
