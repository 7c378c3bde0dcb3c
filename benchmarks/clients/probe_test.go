package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/group/wire"
)

// TestMarks: ranks see each other's marks in each directory, of other jobs none, and nothing of
// them stays.
func TestMarks(t *testing.T) {
	top := t.TempDir()
	common, apart := filepath.Join(top, "new", "cache"), filepath.Join(top, "apart")
	a := marksIn([]string{common, apart}, &wire.Hello{Job: "x/../y", Rank: 0})
	b := marksIn([]string{filepath.Join(top, "its own"), common},
		&wire.Hello{Job: "x/../y", Rank: 12})
	other := marksIn([]string{common}, &wire.Hello{Job: "z", Rank: 0})
	made, err := a.Make([]int{0, 1})
	require.NoError(t, err)
	require.Len(t, made, 2)
	assert.NotEqual(t, made[0].Content, made[1].Content)
	_, err = b.Make([]int{0, 1})
	require.NoError(t, err)
	_, err = other.Make([]int{0})
	require.NoError(t, err)
	seen, err := b.Look([]int{0, 3})
	require.NoError(t, err)
	assert.Equal(t, []wire.Mark{{Rank: 0, Dir: 1, Content: made[0].Content}}, seen,
		"in its second directory the one of the other's first")
	seen, err = a.Look([]int{0, 12})
	require.NoError(t, err)
	assert.Len(t, seen, 3)
	seen, err = other.Look([]int{12})
	require.NoError(t, err)
	assert.Empty(t, seen)
	other.Remove()
	b.Remove()
	a.Remove()
	left, err := os.ReadDir(top)
	require.NoError(t, err)
	assert.Empty(t, left)
	assert.Nil(t, marksIn(nil, &wire.Hello{}))
}

// marked is what stands in a mark of that name.
func marked(name string) string { return markText(name, []byte("0123456789abcdef")) }

// TestAMarkThatIsThere: that of a run of the same job that was killed makes way, and a file of that
// name which nothing proves to be one is left alone, also when its mark would be removed.
func TestAMarkThatIsThere(t *testing.T) {
	m := marksIn([]string{t.TempDir()}, &wire.Hello{Job: "j"}).(*marks)
	name := filepath.Base(m.path(0, 0))
	for text, mark := range map[string]bool{marked(name): true,
		"": false, "notes": false, marked("another name"): false, marked(name) + "more": false,
		strings.Repeat("0123456789abcdef", 4): false, strings.ToUpper(marked(name)): false} {
		require.NoError(t, os.WriteFile(m.path(0, 0), []byte(text), 0o644))
		content, err := m.Make([]int{0})
		if mark {
			require.NoError(t, err, text)
			assert.NotEqual(t, text, content[0].Content)
			seen, err := m.Look([]int{0})
			require.NoError(t, err)
			assert.Equal(t, content, seen)
		} else {
			require.ErrorIs(t, err, os.ErrExist, text)
			require.ErrorContains(t, err, m.path(0, 0)+" is there, and nothing proves")
		}
		m.Remove()
		if mark {
			assert.NoFileExists(t, m.path(0, 0))
		} else {
			there, err := os.ReadFile(m.path(0, 0))
			require.NoError(t, err)
			assert.Equal(t, text, string(there))
			require.NoError(t, os.Remove(m.path(0, 0)))
		}
	}
	require.NoError(t, os.Symlink("elsewhere", m.path(0, 0)))
	_, err := m.Make([]int{0})
	require.ErrorIs(t, err, os.ErrExist)
	assert.NoFileExists(t, filepath.Join(m.dirs[0], "elsewhere"))
}

// TestWriteOfAMark: a filesystem that knows no files without names has the same marks.
func TestWriteOfAMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".kvbench-probe-0123456789abcdef-1")
	for _, make := range []func(path, text string) error{appear, write} {
		require.NoError(t, make(path, marked(filepath.Base(path))))
		assert.True(t, isMark(path))
		require.ErrorIs(t, make(path, "another"), os.ErrExist)
		assert.True(t, isMark(path), "it is as it was")
		require.NoError(t, os.Remove(path))
	}
	err := appear(filepath.Join(t.TempDir(), "none", "mark"), "x")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestMarksOfKilledRuns: only those go that are certainly ours and old.
func TestMarksOfKilledRuns(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-25 * time.Hour)
	const form = ".kvbench-probe-0123456789abcdef-"
	stay := map[string]string{form + "1": marked(form + "1"), // a new one
		form + "2": "longer than a mark has ever been: somebody's notes, of a hundred characters",
		form + "3": "", form + "4": "short notes", form + "5": marked(form + "6"),
		form + "3x":                         marked(form + "3x"),
		".kvbench-probe-0123456789ABCDEF-1": marked(".kvbench-probe-0123456789ABCDEF-1"),
		"notes.txt":                         "", "rank_0": marked("rank_0")}
	for name, text := range stay {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		if name != form+"1" {
			require.NoError(t, os.Chtimes(path, old, old))
		}
	}
	gone := filepath.Join(dir, form+"0")
	require.NoError(t, os.WriteFile(gone, []byte(marked(form+"0")), 0o644))
	require.NoError(t, os.Chtimes(gone, old, old))
	m := marksIn([]string{dir}, &wire.Hello{Job: "j", Rank: 5})
	_, err := m.Make([]int{0})
	require.NoError(t, err)
	m.Remove()
	assert.NoFileExists(t, gone)
	for name := range stay {
		assert.FileExists(t, filepath.Join(dir, name))
	}
	assert.DirExists(t, dir)
}
