package workdir

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

// tree lists everything below root with its kind and content, to compare before and after.
func tree(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		line := strings.TrimPrefix(path, root) + " " + e.Type().String()
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			line += " -> " + to
		case e.Type().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += " " + string(text)
		}
		all = append(all, line)
		return nil
	}))
	sort.Strings(all)
	return all
}

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// usersFiles puts typical files of users into a cache directory.
func usersFiles(t *testing.T, dir, outside string) {
	t.Helper()
	put(t, outside+"/keep.txt", "outside")
	put(t, dir+"/weights.npy", "numbers")
	put(t, dir+"/.hidden", "dots")
	put(t, dir+"/ab/notes.txt", "looks like a fan")
	put(t, dir+"/ab/"+strings.Repeat("a", 30)+"-"+strings.Repeat("0", 16),
		"our kind of name, not our directory")
	put(t, dir+"/rank_7/data", "another rank's name, no marker")
	require.NoError(t, os.MkdirAll(dir+"/empty/dir", 0o755))
	require.NoError(t, os.Symlink(outside, dir+"/link"))
	require.NoError(t, os.Symlink("nowhere", dir+"/dangling"))
}

func openDir(t *testing.T, cache string) *Dir {
	t.Helper()
	d, err := Open(t.Context(), Options{CacheDir: cache, Nonce: "n1"})
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// entries writes n entries' files as the tier would.
func entries(t *testing.T, d *Dir, n int) {
	t.Helper()
	for i := range n {
		fan, name := Name(tiers.Object{Key: fmt.Sprint("k", i), Gen: uint64(i)})
		fd, err := d.Fan(fan)
		require.NoError(t, err)
		f, err := OpenAt(fd, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o644)
		require.NoError(t, err)
		_, err = unix.Write(f, []byte("data"))
		require.NoError(t, err)
		require.NoError(t, unix.Close(f))
	}
}

// die ends a run as SIGKILL does: descriptors close, nothing is cleaned.
func die(d *Dir) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.closeFiles()
}

func TestARunLeavesNothingBehind(t *testing.T) {
	root := t.TempDir()
	d := openDir(t, root+"/a/b/cache")
	entries(t, d, 300)
	info, err := os.Stat(d.Path() + "/" + markerName)
	require.NoError(t, err)
	assert.True(t, info.Mode().IsRegular())
	text, err := os.ReadFile(d.Path() + "/" + markerName)
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(text, &m))
	assert.Equal(t, "n1", m["nonce"])
	assert.EqualValues(t, os.Getpid(), m["pid"])
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	assert.Equal(t, []string{" d---------"}, tree(t, root), "the parents that it made are gone too")
	_, err = d.Fan("ab")
	assert.ErrorIs(t, err, tiers.ErrClosed)
}

func TestAUsersFilesSurviveEverything(t *testing.T) {
	cache, outside := t.TempDir(), t.TempDir()
	usersFiles(t, cache, outside)
	before, beyond := tree(t, cache), tree(t, outside)

	d := openDir(t, cache)
	entries(t, d, 50)
	require.NoError(t, d.Close())
	assert.Equal(t, before, tree(t, cache), "a normal run")

	d = openDir(t, cache)
	entries(t, d, 50)
	die(d)
	// Files of 4 bytes take a block each, or none where a filesystem stores them in the inode.
	left := Reclaimable(Options{CacheDir: cache})
	assert.Equal(t, blocksBelow(t, filepath.Join(cache, "rank_0")), left.Freed)
	assert.Zero(t, Reclaimable(Options{CacheDir: cache, Rank: 1}))
	assert.Zero(t, Reclaimable(Options{CacheDir: filepath.Join(cache, "missing")}))
	d = openDir(t, cache)
	assert.Equal(t, Amount{Files: 50, Bytes: 200}, d.Reclaimed())
	require.NoError(t, d.Close())
	assert.Equal(t, before, tree(t, cache), "a killed run and the next one")
	assert.Equal(t, beyond, tree(t, outside))
}

// blocksBelow returns the bytes that the entries' files in a directory take.
func blocksBelow(t *testing.T, dir string) (bytes int64) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && strings.Contains(e.Name(), "-") {
			var s unix.Stat_t
			err = unix.Stat(path, &s)
			bytes += s.Blocks * 512
		}
		return err
	}))
	return bytes
}

func TestAUsersFilesInsideTheRankDirectorySurviveToo(t *testing.T) {
	cache, outside := t.TempDir(), t.TempDir()
	d := openDir(t, cache)
	entries(t, d, 300)
	for _, fan := range []string{"ab", "ac", "ad", "fe"} {
		_, err := d.Fan(fan)
		require.NoError(t, err)
	}
	rank := d.Path()
	ours := strings.Repeat("b", 30) + "-" + strings.Repeat("0", 16)
	put(t, outside+"/"+ours, "reached only through a link")
	mine := []string{"/notes.npy", "/ab/notes.txt", "/ab/.dot", "/abc/" + ours, "/sub/ab/" + ours,
		"/AB/" + ours, "/ab/" + strings.ToUpper(ours)}
	for _, m := range mine {
		put(t, rank+m, "mine "+m)
	}
	require.NoError(t, os.Symlink(outside+"/"+ours, rank+"/ab/"+ours)) // named like our file
	require.NoError(t, os.Mkdir(rank+"/ac/"+ours, 0o755))              // a directory of that name
	require.NoError(t, os.RemoveAll(rank+"/ad"))
	require.NoError(t, os.Symlink(outside, rank+"/ad")) // named like our directory
	check := func() {
		t.Helper()
		for _, m := range mine {
			text, err := os.ReadFile(rank + m)
			require.NoError(t, err)
			assert.Equal(t, "mine "+m, string(text))
		}
		text, err := os.ReadFile(rank + "/ab/" + ours)
		require.NoError(t, err)
		assert.Equal(t, "reached only through a link", string(text))
		assert.DirExists(t, rank+"/ac/"+ours)
		text, err = os.ReadFile(rank + "/ad/" + ours)
		require.NoError(t, err)
		assert.Equal(t, "reached only through a link", string(text))
	}
	die(d)
	d = openDir(t, cache)
	assert.InDelta(t, 300, d.Reclaimed().Files, 10)
	check()
	_, err := d.Fan("ad")
	assert.ErrorContains(t, err, "move it away")
	// An empty directory of the user differs from ours by the sticky bit.
	require.NoError(t, os.Mkdir(rank+"/ff", 0o755))
	require.NoError(t, d.Close())
	check()
	assert.DirExists(t, rank+"/ff")
	assert.NoDirExists(t, rank+"/fe")
	assert.FileExists(t, rank+"/"+markerName, "so that the directory is still known as ours")
	d = openDir(t, cache)
	require.NoError(t, d.Close())
	check()
}

func TestKeepLeavesFilesForInspectionUntilTheNextRun(t *testing.T) {
	root := t.TempDir()
	d, err := Open(t.Context(), Options{CacheDir: root + "/cache", Keep: true})
	require.NoError(t, err)
	entries(t, d, 5)
	require.NoError(t, d.Close())
	files, _ := filepath.Glob(root + "/cache/rank_0/??/*")
	assert.Len(t, files, 5)
	d = openDir(t, root+"/cache")
	assert.Equal(t, 5, d.Reclaimed().Files)
	require.NoError(t, d.Close())
	assert.NoDirExists(t, root+"/cache", "what the first run made, the second removes")
}

func TestASecondRunIsRefusedAndNamed(t *testing.T) {
	cache := t.TempDir()
	d := openDir(t, cache)
	entries(t, d, 3)
	before := tree(t, cache)
	var seen Removal
	_, err := Open(t.Context(), Options{CacheDir: cache, Removal: &seen})
	require.ErrorIs(t, err, ErrLocked)
	assert.Empty(t, seen.Remaining().Dirs, "the files of the first run are not left behind")
	assert.ErrorContains(t, err, fmt.Sprintf("process %d", os.Getpid()))
	assert.Equal(t, before, tree(t, cache))
	other, err := Open(t.Context(), Options{CacheDir: cache, Rank: 1})
	require.NoError(t, err, "another rank is another directory")
	require.NoError(t, other.Close())
	require.NoError(t, d.Close())
	assert.Len(t, tree(t, cache), 1)
}

func TestDirectoriesThatAreNotOursAreRefusedUntouched(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, rank string) (want string){
		"files without a marker": func(t *testing.T, rank string) string {
			put(t, rank+"/data.npy", "mine")
			return "so it is not a directory of kvbench"
		},
		"a marker of another program": func(t *testing.T, rank string) string {
			put(t, rank+"/"+markerName, `{"name":"not ours"}`)
			return "is damaged, or was not written by kvbench"
		},
		"a marker that is a link": func(t *testing.T, rank string) string {
			put(t, rank+"/../real", markerMagic)
			require.NoError(t, os.Symlink("../real", rank+"/"+markerName))
			return markerName
		},
		"a marker that is a pipe": func(t *testing.T, rank string) string {
			require.NoError(t, unix.Mkfifo(rank+"/"+markerName, 0o644))
			return "not a regular file"
		},
		"a linked rank directory": func(t *testing.T, rank string) string {
			require.NoError(t, os.Remove(rank))
			require.NoError(t, os.Symlink(t.TempDir(), rank))
			return "symbolic link"
		},
		"a file in its place": func(t *testing.T, rank string) string {
			require.NoError(t, os.Remove(rank))
			put(t, rank, "mine")
			return "a symbolic link or a file"
		},
	} {
		t.Run(name, func(t *testing.T) {
			cache := t.TempDir()
			require.NoError(t, os.Mkdir(cache+"/rank_0", 0o755))
			want := make(t, cache+"/rank_0")
			var before []string
			if name != "a marker that is a pipe" {
				before = tree(t, cache)
			}
			_, err := Open(t.Context(), Options{CacheDir: cache})
			require.ErrorContains(t, err, want)
			if before != nil {
				assert.Equal(t, before, tree(t, cache))
			}
		})
	}
}

// Each state in which a kill can leave the directory, in the order of a run.
func TestEveryStateOfAKilledRunIsRecovered(t *testing.T) {
	text, err := json.Marshal(marker{Note: markerNote, PID: 99999999})
	require.NoError(t, err)
	whole := string(text) + "\n"
	const none = "none"
	fan, name := Name(tiers.Object{Key: "k", Gen: 1})
	for _, c := range []struct {
		state, marker string
		fans          []string
		files         int
	}{
		{"rank directory made", none, nil, 0},
		{"marker made, empty", "", nil, 0},
		{"marker half written", whole[:40], nil, 0},
		{"marker in the magic", markerMagic[:9], nil, 0},
		{"marker written", whole, nil, 0},
		{"fan made", whole, []string{fan}, 0},
		{"entry half written", whole, []string{fan}, 1},
		{"marker half rewritten by a reclaiming run", whole[:90] + whole[60:], []string{fan}, 1},
		{"files removed, fans there", whole, []string{"00", "01", "02", fan}, 0},
	} {
		t.Run(c.state, func(t *testing.T) {
			cache := t.TempDir()
			rank := cache + "/rank_0"
			require.NoError(t, unix.Mkdir(rank, TreeMode))
			if c.marker != none {
				put(t, rank+"/"+markerName, c.marker)
			}
			for _, fan := range c.fans {
				require.NoError(t, unix.Mkdir(rank+"/"+fan, TreeMode))
			}
			if c.files > 0 {
				put(t, rank+"/"+fan+"/"+name, "half")
			}
			d := openDir(t, cache)
			assert.Equal(t, c.files, d.Reclaimed().Files)
			entries(t, d, 10)
			require.NoError(t, d.Close())
			assert.Len(t, tree(t, cache), 1, "all gone")
		})
	}
}

func TestAnEmptyRankDirectoryOfTheUsersStays(t *testing.T) {
	cache := t.TempDir()
	require.NoError(t, os.Mkdir(cache+"/rank_0", 0o755))
	d := openDir(t, cache)
	entries(t, d, 3)
	require.NoError(t, d.Close())
	assert.Equal(t, []string{" d---------", "/rank_0 d---------"}, tree(t, cache))
}

func TestRunsOpeningAndClosingAtOnceNeverShareTheDirectory(t *testing.T) {
	cache := t.TempDir() + "/made/by/them"
	var all sync.WaitGroup
	var inside sync.Mutex
	opened := 0
	for range 4 {
		all.Go(func() {
			for range 50 {
				d, err := Open(t.Context(), Options{CacheDir: cache})
				if err != nil {
					if !assert.ErrorIs(t, err, ErrLocked) {
						return
					}
					continue
				}
				if !assert.True(t, inside.TryLock(), "two at once") {
					return
				}
				opened++
				inside.Unlock()
				assert.NoError(t, d.Close())
			}
		})
	}
	all.Wait()
	assert.Positive(t, opened)
	assert.NoDirExists(t, cache+"/rank_0")
}
