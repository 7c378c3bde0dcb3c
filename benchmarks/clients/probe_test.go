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
	_, err = other.Make()
	require.Error(t, err, "a file that is there is nobody's to write into")
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
