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
		var dirs []*Dir
		var paths []string
		for i := range order {
			d, err := Open(t.Context(), shared(cache, "n"))
			require.NoError(t, err)
			assert.Equal(t, i > 0, d.Joined())
			dirs, paths = append(dirs, d), append(paths, putEntry(t, d, string(rune('a'+i))))
		}
		for n, i := range order {
			for _, path := range paths {
				assert.FileExists(t, path)
			}
			for _, nonce := range []string{"m", ""} {
				_, err := Open(t.Context(), shared(cache, nonce))
				require.ErrorIs(t, err, ErrLocked, "%d are there", 3-n)
			}
			require.NoError(t, dirs[i].Close())
		}
		assert.NoDirExists(t, cache)
	}
}

// A process that is ready too early, while the first one still removes what an earlier run left.
func TestAnExclusiveLockIsNotShared(t *testing.T) {
	cache := t.TempDir()
	alone := shared(cache, "n")
	alone.Shared = false
	d, err := Open(t.Context(), alone)
	require.NoError(t, err)
	_, err = Open(t.Context(), shared(cache, "n"))
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, d.Close())
}
