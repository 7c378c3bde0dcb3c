package workdir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

// ending is a context that ends after a number of checks: one for each counted file, and two for each
// removal.
type ending struct {
	context.Context
	checks int
}

func (e *ending) Err() error {
	if e.checks--; e.checks < 0 {
		return context.Canceled
	}
	return nil
}

func TestARemovalThatIsStoppedIsFinishedByTheNextRun(t *testing.T) {
	cache := t.TempDir()
	usersFiles(t, cache, t.TempDir())
	before := tree(t, cache)
	seen := &Removal{}
	open := func(ctx context.Context) (*Dir, error) {
		return Open(ctx, Options{CacheDir: cache, Removal: seen})
	}
	remains := func(files int) {
		t.Helper()
		want := Remains{Known: true}
		if files > 0 {
			want.Dirs = []string{cache + "/rank_0"}
			want.Amount = Amount{files, int64(4 * files)}
		}
		assert.Equal(t, want, seen.Remaining())
		seen = &Removal{} // the first one has stopped
	}
	remains(0)
	d, err := open(t.Context())
	require.NoError(t, err)
	entries(t, d, 50)
	err = d.Remove(&ending{t.Context(), 50 + 30})
	require.ErrorContains(t, err, "the next start tries again")
	done, total := seen.Progress()
	assert.Equal(t, []int64{120, 200}, []int64{done, total})
	remains(20)
	require.NoError(t, d.Close(), "it is over all the same")

	_, err = open(&ending{t.Context(), 20 + 5})
	require.ErrorContains(t, err, "reclaim what an earlier run left")
	remains(15)

	d, err = open(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 15, d.Reclaimed().Files)
	entries(t, d, 3)
	remains(3)
	require.ErrorContains(t, d.Close(), "the process ends")
	d, err = open(t.Context())
	require.NoError(t, err)
	require.NoError(t, d.Close())
	remains(0)
	assert.Equal(t, before, tree(t, cache))
}

// A large file is removed in steps; a file with another hard link keeps its content.
func TestLargeFilesAreRemovedInSteps(t *testing.T) {
	cache, mine := t.TempDir(), t.TempDir()+"/mine"
	const size = 3*stepBytes + 5
	create := func(d *Dir, key string) (path string) {
		t.Helper()
		fan, name := Name(tiers.Object{Key: key})
		fd, err := d.Fan(fan)
		require.NoError(t, err)
		f, err := OpenAt(fd, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o644)
		require.NoError(t, err)
		require.NoError(t, errors.Join(unix.Ftruncate(f, size), unix.Close(f)))
		return d.Path() + "/" + fan + "/" + name
	}
	d, err := Open(t.Context(), Options{CacheDir: cache})
	require.NoError(t, err)
	path := create(d, "a")
	// One check when it is counted, one before each of two steps.
	require.ErrorIs(t, d.Remove(&ending{t.Context(), 3}), context.Canceled)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, stepBytes+5, info.Size())

	d, err = Open(t.Context(), Options{CacheDir: cache})
	require.NoError(t, err)
	assert.Equal(t, Amount{1, stepBytes + 5}, d.Reclaimed())
	require.NoError(t, os.Link(create(d, "b"), mine))
	require.NoError(t, d.Close())
	info, err = os.Stat(mine)
	require.NoError(t, err)
	assert.EqualValues(t, size, info.Size())
	assert.Len(t, tree(t, cache), 1)
}

// The last line names kept files, and does not count a user's files in the work directory.
func TestKeptFilesRemain(t *testing.T) {
	var seen Removal
	d, err := Open(t.Context(), Options{CacheDir: t.TempDir(), Keep: true, Removal: &seen})
	require.NoError(t, err)
	entries(t, d, 5)
	require.NoError(t, d.Close())
	put(t, d.Path()+"/notes", "mine")
	put(t, d.Path()+"/results/Synthetic/summary.txt", "")
	assert.Equal(t, Remains{Dirs: []string{d.Path()}, Amount: Amount{5, 20}, Known: true, Others: 2},
		seen.Remaining())
}

// A Removal includes all places of a run.
func TestRemovalOfSeveralPlaces(t *testing.T) {
	var seen Removal
	var dirs []string
	for i := range 2 {
		d, err := Open(t.Context(), Options{CacheDir: t.TempDir(), Keep: true, Removal: &seen})
		require.NoError(t, err)
		entries(t, d, 5+i)
		defer func() { assert.NoError(t, d.Close()) }()
		dirs = append(dirs, d.Path())
	}
	hang := make(chan struct{})
	defer close(hang)
	bucket := seen.Add("s3://bucket", func() (Count, error) { <-hang; return Count{}, nil })
	bucket.Counted(Amount{2, 100})
	bucket.Removed(Amount{1, 30})
	done, total := seen.Progress()
	assert.Equal(t, []int64{30, 100}, []int64{done, total})
	want := Remains{Dirs: append(dirs, "s3://bucket"), Amount: Amount{12, 114}, Known: true}
	assert.Equal(t, want, seen.Remaining(), "a place that hangs: the amount that was counted before")
	bucket.Over()
	assert.Equal(t, Amount{11, 44}, seen.Remaining().Amount)
}

// Removals and lists are calls, so that a directory that hangs is shown.
func TestCallsThatMayHangAreShown(t *testing.T) {
	cache := t.TempDir()
	calls := map[string]int{}
	d, err := Open(t.Context(), Options{CacheDir: cache, Call: func(what, where string,
		f func() error) error {
		rel, err := filepath.Rel(cache, where)
		assert.NoError(t, err)
		assert.True(t, filepath.IsLocal(rel), where)
		calls[what]++
		return f()
	}})
	require.NoError(t, err)
	entries(t, d, 3)
	require.NoError(t, d.Close())
	assert.Equal(t, map[string]int{"open": 2, "list": 10, "write": 1, "flush": 1, "remove": 3}, calls)
}
