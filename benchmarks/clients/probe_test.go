package clients

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/group/wire"
)

// TestMarks: ranks see each other's marks, of other jobs none, and nothing of them stays.
func TestMarks(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "new", "cache")
	a := marksIn(dir, &wire.Hello{Job: "x/../y", Rank: 0})
	b := marksIn(dir, &wire.Hello{Job: "x/../y", Rank: 12})
	other := marksIn(dir, &wire.Hello{Job: "z", Rank: 0})
	content, err := a.Make()
	require.NoError(t, err)
	_, err = b.Make()
	require.NoError(t, err)
	_, err = other.Make()
	require.NoError(t, err)
	seen, err := b.Look([]int{0, 3, 12})
	require.NoError(t, err)
	require.Len(t, seen, 2)
	assert.Equal(t, wire.Mark{Rank: 0, Content: content}, seen[0])
	seen, err = other.Look([]int{12})
	require.NoError(t, err)
	assert.Empty(t, seen)
	other.Remove()
	b.Remove()
	a.Remove()
	left, err := os.ReadDir(top)
	require.NoError(t, err)
	assert.Empty(t, left)
	assert.Nil(t, marksIn("", &wire.Hello{}))
}

// TestAMarkThatIsThere: that of a run of the same job that was killed makes way, and a file of that
// name which is none is left alone, also when its mark would be removed.
func TestAMarkThatIsThere(t *testing.T) {
	m := marksIn(t.TempDir(), &wire.Hello{Job: "j"}).(*marks)
	for text, mark := range map[string]bool{"0123456789abcdef0123456789abcdef": true, "": true,
		"notes": false, "0123456789ABCDEF0123456789ABCDEF": false,
		"0123456789abcdef0123456789abcdef and more": false} {
		require.NoError(t, os.WriteFile(m.path(0), []byte(text), 0o644))
		content, err := m.Make()
		if mark {
			require.NoError(t, err, text)
			seen, err := m.Look([]int{0})
			require.NoError(t, err)
			assert.Equal(t, []wire.Mark{{Content: content}}, seen)
		} else {
			require.ErrorIs(t, err, os.ErrExist, text)
		}
		m.Remove()
		if mark {
			assert.NoFileExists(t, m.path(0))
		} else {
			there, err := os.ReadFile(m.path(0))
			require.NoError(t, err)
			assert.Equal(t, text, string(there))
			require.NoError(t, os.Remove(m.path(0)))
		}
	}
	require.NoError(t, os.Symlink("elsewhere", m.path(0)))
	_, err := m.Make()
	require.ErrorIs(t, err, os.ErrExist)
	assert.NoFileExists(t, filepath.Join(m.dir, "elsewhere"))
}

// TestMarksOfKilledRuns: only those go that are certainly ours and old.
func TestMarksOfKilledRuns(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-25 * time.Hour)
	stay := map[string]string{".kvbench-probe-0123456789abcdef-1": "new",
		".kvbench-probe-0123456789abcdef-2":  "longer than a mark has ever been: somebody's notes",
		".kvbench-probe-0123456789abcdef-3x": "", ".kvbench-probe-0123456789ABCDEF-1": "",
		"notes.txt": "", "rank_0": ""}
	for name, text := range stay {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		if text != "new" {
			require.NoError(t, os.Chtimes(path, old, old))
		}
	}
	gone := filepath.Join(dir, ".kvbench-probe-0123456789abcdef-0")
	require.NoError(t, os.WriteFile(gone, []byte("0123456789abcdef0123456789abcdef"), 0o644))
	require.NoError(t, os.Chtimes(gone, old, old))
	m := marksIn(dir, &wire.Hello{Job: "j", Rank: 5})
	_, err := m.Make()
	require.NoError(t, err)
	m.Remove()
	assert.NoFileExists(t, gone)
	for name := range stay {
		assert.FileExists(t, filepath.Join(dir, name))
	}
	assert.DirExists(t, dir)
}
