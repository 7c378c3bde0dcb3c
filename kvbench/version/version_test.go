package version

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeTree makes a directory of files.
func fakeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return root
}

func TestVersionIsNeverEmpty(t *testing.T) { assert.NotEmpty(t, Current()) }

func TestStamped(t *testing.T) {
	rev := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}
	assert.Equal(t, "abc", stamped([]debug.BuildSetting{rev,
		{Key: "vcs.modified", Value: "false"}}))
	assert.Equal(t, "abc+dirty",
		stamped([]debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, rev}))
	assert.Empty(t, stamped(nil))
}

func TestCheckedOut(t *testing.T) {
	hash, other := strings.Repeat("a1", 20), strings.Repeat("b2", 20)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"a branch", map[string]string{".git/HEAD": "ref: refs/heads/main\n",
			".git/refs/heads/main": hash + "\n"}, hash},
		{"a detached head", map[string]string{".git/HEAD": hash + "\n"}, hash},
		{"a packed branch", map[string]string{
			".git/HEAD": "ref: refs/heads/main\n",
			".git/packed-refs": "# pack-refs\n" + other + " refs/heads/x\n" + hash +
				" refs/heads/main\n",
		}, hash},
		{"a worktree", map[string]string{
			".git":                            "gitdir: main/.git/worktrees/w\n",
			"main/.git/worktrees/w/HEAD":      "ref: refs/heads/w\n",
			"main/.git/worktrees/w/commondir": "../..\n", "main/.git/refs/heads/w": hash + "\n",
		}, hash},
		{"a branch without a commit", map[string]string{".git/HEAD": "ref: refs/heads/main\n"}, ""},
		{"no checkout", nil, ""},
		{"nonsense", map[string]string{".git/HEAD": "hello\n"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, checkedOut(fakeTree(t, c.files)))
		})
	}
}

func TestVersionIsNotThatOfAnotherModule(t *testing.T) {
	ours := fakeTree(t, map[string]string{"go.mod": "module kvbench\n\ngo 1.26\n"})
	other := fakeTree(t, map[string]string{"go.mod": "module kvbench2\n"})
	assert.True(t, isOurModule(ours))
	assert.False(t, isOurModule(other))
	assert.False(t, isOurModule(t.TempDir()))
}

func TestModuleRootIgnoresADirectoryOfThatName(t *testing.T) {
	base := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(base, "sub/go.mod"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(base, "go.mod"), nil, 0o644))
	assert.Equal(t, base, ModuleRoot(filepath.Join(base, "sub")))
}
