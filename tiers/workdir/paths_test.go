package workdir

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSystemDirectoriesAreRefused(t *testing.T) {
	for _, dir := range forbidden {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		for _, below := range []string{"", "/", "/kvbench-none", "/kvbench-none/x",
			"/../" + filepath.Base(dir)} {
			err := CheckPath(dir + below)
			assert.ErrorContains(t, err, " is a system directory; ", dir+below)
		}
	}
	for _, dir := range []string{"/usr/lib", "/usr/local/kv", "/lib/kv", "/", "/var", "/home/../run"} {
		assert.ErrorContains(t, CheckPath(dir), " is a system directory; ", dir)
	}
	assert.ErrorContains(t, CheckPath("/usr/lib"), "cannot use /usr/lib as the cache directory: /usr is a system directory")
	assert.ErrorContains(t, CheckPath("/dev/shm/kv"), "mount a tmpfs elsewhere")
	link := t.TempDir() + "/link"
	require.NoError(t, os.Symlink("/etc", link))
	assert.ErrorContains(t, CheckPath(link), "which is /etc")
	assert.ErrorContains(t, CheckPath(link+"/none/below"), "which is /etc/none/below")
}

func TestDirectoriesThatOnlyLookLikeTheSystemsAreFine(t *testing.T) {
	for _, dir := range []string{"/rootfs", "/etcetera/kv", "/developers", "/usrbin",
		"/mnt/etc", "/mnt", "/srv", "/opt/kv", "/var/tmp", "/var/lib/kv", "/home/user", "/run/user/1000", "/boots", t.TempDir() + "/dev", DefaultCacheDir()} {
		assert.NoError(t, CheckPath(dir), dir)
	}
	_, err := os.Stat("/etcetera")
	assert.True(t, os.IsNotExist(err), "checking makes nothing")
}

func TestWaysThatCannotBeGoneAreRefused(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/file", "")
	require.NoError(t, os.Symlink("missing", dir+"/dangling"))
	require.NoError(t, os.Symlink("loop", dir+"/loop"))
	assert.ErrorContains(t, CheckPath(""), "-cache-dir")
	assert.ErrorContains(t, CheckPath(dir+"/file"), "not a directory")
	assert.ErrorContains(t, CheckPath(dir+"/file/below"), "not a directory")
	assert.ErrorContains(t, CheckPath(dir+"/dangling/below"), "cannot be entered")
	assert.ErrorContains(t, CheckPath(dir+"/loop"), "cannot be entered")
	assert.ErrorContains(t, CheckPath("/dev/null"), "not a directory")
	disks, err := filepath.Glob("/sys/class/block/*")
	require.NoError(t, err)
	for _, disk := range disks {
		device := "/dev/" + filepath.Base(disk)
		if info, err := os.Stat(device); err == nil && info.Mode().Type() == fs.ModeDevice {
			assert.ErrorContains(t, CheckPath(device), "raw block devices are not supported: make a "+
				"filesystem on "+device+", mount it and give a directory there")
			assert.ErrorContains(t, CheckPath(device+"/kv"), "raw block devices")
		}
	}
}
