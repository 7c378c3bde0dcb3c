package benchmarks

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

func TestLaunchDirRules(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	typed, module, pkg, loose := filepath.Join(base, "typed"), filepath.Join(base, "module"),
		filepath.Join(base, "module/benchmarks"), filepath.Join(base, "loose")
	for _, dir := range []string{typed, pkg, loose} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.mod"), []byte("module x\n"), 0o644))

	const parent = 77
	process := func(t *testing.T, comm, exe, cwd string) proc {
		p := proc(t.TempDir())
		require.NoError(t, os.Mkdir(p.file(parent, ""), 0o755))
		require.NoError(t, os.WriteFile(p.file(parent, "comm"), []byte(comm+"\n"), 0o644))
		if exe != "" {
			require.NoError(t, os.Symlink(exe, p.file(parent, "exe")))
		}
		if cwd != "" {
			require.NoError(t, os.Symlink(cwd, p.file(parent, "cwd")))
		}
		return p
	}
	byGo, byHand := []string{result.ByGoTest, "-test.bench=."}, []string{"-test.bench=."}
	for _, c := range []struct {
		name           string
		comm, exe, cwd string
		from           string // working directory of this process
		args           []string
		want           string
	}{
		{"the go command's directory", "go", "/usr/local/go/bin/go", typed, pkg, byGo, typed},
		{"a go command known by its executable only", "renamed", "/usr/local/go/bin/go", typed, pkg,
			byGo, typed},
		{"a toolchain replaced while it runs", "renamed", "/usr/local/go/bin/go (deleted)", typed,
			pkg, byGo, typed},
		{"a go command of another user hides its directory", "go", "", "", pkg, byGo, module},
		{"a go command whose directory was removed", "go", "", typed + " (deleted)", pkg, byGo,
			module},
		{"go test -exec, in a module", "env", "/usr/bin/env", typed, pkg, byGo, module},
		{"go test -exec, outside of any module", "env", "/usr/bin/env", typed, loose, byGo, loose},
		{"a shell, in a module", "bash", "/bin/bash", typed, pkg, byHand, pkg},
		{"a shell, outside of any module", "bash", "/bin/bash", typed, loose, byHand, loose},
		{"a program that merely starts with go", "gopls", "/usr/bin/gopls", typed, loose, byHand,
			loose},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, dirOf(process(t, c.comm, c.exe, c.cwd), parent, c.from, c.args))
		})
	}
	t.Run("no /proc", func(t *testing.T) {
		assert.Equal(t, module, dirOf(proc(t.TempDir()), parent, pkg, byGo))
	})
}
