package workdir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
)

// shared returns the options of a process of the run with that nonce.
func shared(cache, nonce string) Options {
	return Options{CacheDir: cache, Nonce: nonce, Shared: true,
		Folder: &Folder{Name: "all", Files: entryNames{}}}
}

// putEntry writes a file of the run.
func putEntry(t *testing.T, d *Dir, key string) string {
	t.Helper()
	fan, name := d.Name(tiers.Object{Key: key})
	_, err := d.Fan(fan)
	require.NoError(t, err)
	path := filepath.Join(d.Path(), fan, name)
	require.NoError(t, os.WriteFile(path, []byte(key), 0o644))
	return path
}

// Processes of one run work in one directory. The one that closes last removes the files of all, and
// until then no other run can open the directory.
func TestTheLastOneRemoves(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		cache := t.TempDir() + "/cache"
		first, err := Open(t.Context(), shared(cache, "n"))
		require.NoError(t, err)
		dirs := []*Dir{first}
		for range 2 {
			d, err := Join(shared(cache, "n"))
			require.NoError(t, err)
			dirs = append(dirs, d)
		}
		assert.Equal(t, []bool{false, true, true}, []bool{dirs[0].Joined(), dirs[1].Joined(),
			dirs[2].Joined()})
		var paths []string
		for i, d := range dirs {
			paths = append(paths, putEntry(t, d, string(rune('a'+i))))
		}
		for n, i := range order {
			for _, path := range paths {
				assert.FileExists(t, path)
			}
			locked := new(LockedError)
			_, err := Open(t.Context(), shared(cache, "n"))
			require.ErrorAs(t, err, &locked, "%d are there", 3-n)
			require.NoError(t, dirs[i].Close())
		}
		assert.NoDirExists(t, cache)
	}
}

// Join refuses a directory of another run, of one that has ended, or without a marker, and creates no
// directory.
func TestJoinIsForOneRun(t *testing.T) {
	cache := t.TempDir() + "/cache"
	_, err := Join(shared(cache, "n"))
	require.ErrorIs(t, err, ErrNotShared)
	assert.NoDirExists(t, cache)

	d, err := Open(t.Context(), shared(cache, "n"))
	require.NoError(t, err)
	for _, nonce := range []string{"m", ""} {
		_, err = Join(shared(cache, nonce))
		require.ErrorIs(t, err, ErrNotShared)
	}
	// A refused Join has not released the lock, and changed nothing.
	path := putEntry(t, d, "a")
	require.NoError(t, d.Close())
	assert.NoFileExists(t, path)
	assert.NoDirExists(t, cache)
}
