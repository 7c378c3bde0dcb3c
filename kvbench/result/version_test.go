package result

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersionIsNeverEmpty(t *testing.T) { assert.NotEmpty(t, Version()) }

func TestProgramsOfTheBuildCacheAreThoseOfTheCheckout(t *testing.T) {
	const key = "605b5c1e6862b5ad8d64287f6f98b98deddc505ecd9f31b3fe45dc7f85b5b49f"
	assert.Regexp(t, byGoTool, "/root/.cache/go-build/60/"+key+"-d/kvreport")
	assert.Regexp(t, byGoTool, "/tmp/go-build1234/b001/exe/kvreport")
	assert.NotRegexp(t, byGoTool, "/usr/local/bin/kvreport")
}

func TestStamped(t *testing.T) {
	rev := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}
	assert.Equal(t, "abc", stamped([]debug.BuildSetting{rev,
		{Key: "vcs.modified", Value: "false"}}))
	assert.Equal(t, "abc+dirty",
		stamped([]debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, rev}))
	assert.Empty(t, stamped(nil))
}

func TestCheckedOut(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skipf("there is no git: %v", err)
	}
	// A hook of git, and git rebase --exec, set these to another repository.
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} {
		t.Setenv(name, "")
		require.NoError(t, os.Unsetenv(name))
	}
	root := string(rootOf(t, map[string]string{"go.mod": "module kvbench\n"}))
	assert.Empty(t, checkedOut(root), "no checkout")
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", root, "-c", "user.name=x", "-c",
			"user.email=x@x"}, args...)...).Output()
		require.NoError(t, err)
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	assert.Empty(t, checkedOut(root), "no commit")
	git("add", "go.mod")
	git("commit", "-q", "-m", "x")
	commit := git("rev-parse", "HEAD")
	require.NoError(t, os.WriteFile(filepath.Join(root, "result"), nil, 0o644))
	assert.Equal(t, commit, checkedOut(root))
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module x\n"), 0o644))
	assert.Equal(t, commit+"+dirty", checkedOut(root))
	assert.Empty(t, checkedOut(string(rootOf(t, map[string]string{".git/HEAD": "hello\n"}))), "nonsense")
	inside := filepath.Join(root, "copy")
	require.NoError(t, os.Mkdir(inside, 0o755))
	assert.Empty(t, checkedOut(inside), "another checkout's")
}

func TestModuleRootIgnoresADirectoryOfThatName(t *testing.T) {
	base := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(base, "sub/go.mod"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(base, "go.mod"), nil, 0o644))
	assert.Equal(t, base, ModuleRoot(filepath.Join(base, "sub")))
}
