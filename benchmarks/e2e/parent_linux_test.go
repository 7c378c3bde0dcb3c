package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// goTest makes the bench run the real go command in this directory.
func (b *bench) goTest() {
	b.t.Helper()
	binary(b.t) // compiled, so that what follows is quick
	here, err := filepath.Abs(benchmarks)
	require.NoError(b.t, err)
	b.command = []string{"go", "test", "-C", here, ".", "-run=^$"}
}

// owner is the process that the marker of the cache directory names.
func (b *bench) owner() int {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.cache, "rank_0/.kvbench.json"))
	require.NoError(b.t, err)
	var m struct{ PID int }
	require.NoError(b.t, json.Unmarshal(text, &m))
	return m.PID
}

// TestTheDeathOfTheGoCommandEndsTheRun kills the go command the hard way. This
// process adopts the orphan, so that it learns its exit code.
func TestTheDeathOfTheGoCommandEndsTheRun(t *testing.T) {
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	defer func() { require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)) }()
	inTime(t, func() stopping {
		b, root, before := userBench(t)
		b.goTest()
		p := b.start(goFlags(b.long())...)
		b.working()
		orphan := b.owner()
		assert.NotEqual(t, p.Process.Pid, orphan)
		// Wait returns when the last holder of the output is gone: the orphan.
		s := b.stop(p, func() { require.NoError(t, p.Process.Kill()) })
		var status unix.WaitStatus
		_, err := unix.Wait4(orphan, &status, 0, nil)
		require.NoError(t, err)
		assert.Equal(t, 143, status.ExitStatus())
		r := interrupted(t, b)
		assert.Contains(t, r.Error, "the go command that started this run has ended")
		s.leaves(b, root, before)
		return s
	})
}

// TestControlCAtTheGoCommand sends SIGINT to the whole process group, as a
// terminal does.
func TestControlCAtTheGoCommand(t *testing.T) {
	inTime(t, func() stopping {
		b, root, before := userBench(t)
		b.goTest()
		b.attr = &syscall.SysProcAttr{Setpgid: true}
		p := b.start(goFlags(b.long())...)
		b.working()
		s := b.stop(p, func() { require.NoError(t, syscall.Kill(-p.Process.Pid, syscall.SIGINT)) })
		assert.Equal(t, 1, s.code, "the go command shows 1 for all of them")
		assert.Contains(t, s.stdout, "exit status 130")
		assert.Contains(t, s.stdout, "result: "+resultFiles(t, b.results)[0]+"\n")
		interrupted(t, b)
		s.leaves(b, root, before)
		return s
	})
}
