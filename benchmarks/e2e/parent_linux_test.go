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

// A terminal that is closed under a run sends SIGHUP, and Ctrl-C at the go command SIGINT to the whole
// process group.
func init() {
	endings["a lost connection"] = ending{sig: syscall.SIGHUP, code: 129,
		how: func(b *bench) func(*process) {
			s := b.terminal(100)
			return func(*process) {
				require.NoError(b.t, b.files[0].Close())
				require.NoError(b.t, s.master.Close())
			}
		}}
	endings["Ctrl-C at the go command"] = ending{sig: syscall.SIGINT, code: 1,
		how: func(b *bench) func(*process) {
			b.goTest()
			b.attr = &syscall.SysProcAttr{Setpgid: true}
			return func(p *process) {
				require.NoError(b.t, syscall.Kill(-p.Process.Pid, syscall.SIGINT))
			}
		}}
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
