package workdir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

func TestARemovalThatIsStoppedIsFinishedByTheNextRun(t *testing.T) {
	cache := t.TempDir()
	usersFiles(t, cache, t.TempDir())
	before := tree(t, cache)
	var seen Removal
	open := func(ctx context.Context) (*Dir, error) {
		return Open(ctx, Options{CacheDir: cache, Removal: &seen})
	}
	left := func() (dir string, n Amount) {
		t.Helper()
		r := seen.Left()
		assert.True(t, r.Known)
		return strings.Join(r.Dirs, ", "), r.Amount
	}
	dir, _ := left()
	assert.Empty(t, dir, "nothing is there yet")

	d, err := open(t.Context())
	require.NoError(t, err)
	entries(t, d, 50)
	dir, n := left()
	assert.Equal(t, d.Path(), dir)
	assert.Equal(t, Amount{50, 200}, n, "counted before the end")

	// The context is checked once for each counted file, and once before each removal.
	err = d.Remove(&ending{t.Context(), 50 + 30})
	require.ErrorContains(t, err, "the next start tries again")
	dir, n = left()
	assert.Equal(t, d.Path(), dir)
	assert.Equal(t, Amount{20, 80}, n)
	done, of := seen.Progress()
	assert.Equal(t, []int64{120, 200}, []int64{done, of})
	require.NoError(t, d.Close(), "it is over all the same")

	_, err = open(&ending{t.Context(), 20 + 5})
	require.ErrorContains(t, err, "reclaim what an earlier run left")
	_, n = left()
	assert.Equal(t, Amount{15, 60}, n, "so is a start that is stopped meanwhile")

	// An abandoned removal may end after its trial: Left counts the files on the disk.
	files, err := filepath.Glob(d.Path() + "/[0-9a-f][0-9a-f]/*-*")
	require.NoError(t, err)
	require.Len(t, files, 15)
	require.NoError(t, os.Remove(files[0]))
	_, n = left()
	assert.Equal(t, Amount{14, 56}, n)

	d, err = open(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 14, d.Reclaimed().Files)
	_, n = left()
	assert.Zero(t, n)
	entries(t, d, 3)
	require.NoError(t, d.Close())
	dir, _ = left()
	assert.Empty(t, dir)
	assert.Equal(t, before, tree(t, cache))
}

// asking is a context whose check number 20 calls Left.
type asking struct {
	context.Context
	looks int
	seen  *Removal
	left  Remains
}

func (a *asking) Err() error {
	if a.looks--; a.looks == 0 {
		a.left = a.seen.Left()
	}
	return nil
}

// The last line of a process stays true, although a removal was in progress.
func TestNothingIsRemovedAfterTheCount(t *testing.T) {
	cache := t.TempDir()
	var seen Removal
	d, err := Open(t.Context(), Options{CacheDir: cache, Removal: &seen})
	require.NoError(t, err)
	entries(t, d, 50)
	ctx := &asking{Context: t.Context(), looks: 50 + 20, seen: &seen}
	require.ErrorContains(t, d.Remove(ctx), "the process ends")
	require.Positive(t, ctx.left.Files)
	d, err = Open(t.Context(), Options{CacheDir: cache})
	require.NoError(t, err)
	assert.Equal(t, ctx.left.Amount, d.Reclaimed().Amount)
	require.NoError(t, d.Close())
}

// A large file is removed in steps; a file with another hard link keeps its content.
func TestLargeFilesAreRemovedInSteps(t *testing.T) {
	cache, mine := t.TempDir(), t.TempDir()+"/mine"
	const size = 3*step + 5
	make := func(d *Dir, key string) (path string) {
		t.Helper()
		entry := tiers.Object{Key: key}
		fan, name := Name(entry)
		fd, err := d.Fan(fan)
		require.NoError(t, err)
		f, err := OpenAt(fd, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o644)
		require.NoError(t, err)
		require.NoError(t, errors.Join(unix.Ftruncate(f, size), unix.Close(f)))
		return d.Path() + "/" + fan + "/" + name
	}
	var seen Removal
	d, err := Open(t.Context(), Options{CacheDir: cache, Removal: &seen})
	require.NoError(t, err)
	path := make(d, "a")
	// One check when it is counted, one before each of two steps.
	require.ErrorIs(t, d.Remove(&ending{t.Context(), 3}), context.Canceled)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, step+5, info.Size())
	assert.Equal(t, Amount{1, step + 5}, seen.Left().Amount)

	d, err = Open(t.Context(), Options{CacheDir: cache})
	require.NoError(t, err)
	assert.Equal(t, Amount{1, step + 5}, d.Reclaimed().Amount)
	require.NoError(t, os.Link(make(d, "b"), mine))
	require.NoError(t, d.Close())
	info, err = os.Stat(mine)
	require.NoError(t, err)
	assert.EqualValues(t, size, info.Size())
	assert.Len(t, tree(t, cache), 1)
}
