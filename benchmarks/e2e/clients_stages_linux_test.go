package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

// TestSignalsToRanksInEveryStage: signals to a run of ranks, in each stage of it. No process goes
// on, the exit code is that of the signal, a lost rank is named, the others keep results, what is
// left goes with the next run, and what is not the run's own stays.
func TestSignalsToRanksInEveryStage(t *testing.T) {
	t.Parallel()
	const n = 3
	files := func(pattern string, least int) func(*bench, int) bool {
		return func(b *bench, _ int) bool {
			for rank := range n {
				there, _ := filepath.Glob(filepath.Join(b.cache, fmt.Sprint("rank_", rank), pattern))
				if len(there) < least {
					return false
				}
			}
			return true
		}
	}
	for _, stage := range []struct {
		name string
		args []string
		in   func(b *bench, pid int) bool // the run of that process is in the stage
	}{
		{"coming together", []string{"-rendezvous-timeout=10s"}, func(_ *bench, pid int) bool {
			return len(childrenOf(pid)) == n-1
		}},
		{"preconditioning", []string{"-precondition", "-precondition-size-gb=1000"},
			files("*/*", 3)},
		{"measuring", nil, files("*/*", 3)},
		{"between trials", []string{"-test.benchtime=1x", "-test.count=100"},
			func(b *bench, _ int) bool {
				return exists(b.results + "/option_1/trial_1/all_ranks")
			}},
	} {
		for _, c := range []struct {
			to   string
			sig  syscall.Signal
			code int
			why  string // of a lost rank
		}{
			{"all", syscall.SIGINT, 130, ""}, // from a terminal
			{"coordinator", syscall.SIGTERM, 143, ""},
			{"coordinator", syscall.SIGKILL, -1, ""},
			{"coordinator", syscall.SIGSTOP, exitFailed, ""},
			{"rank", syscall.SIGKILL, exitFailed, "died: signal: killed"},
			{"rank", syscall.SIGSTOP, exitFailed, "has not answered for 4s"},
		} {
			measuring := stage.name == "measuring"
			if c.sig == syscall.SIGSTOP && !measuring {
				continue // silence takes seconds to find, in all stages by the same code
			}
			t.Run(fmt.Sprint(stage.name, " ", c.to, " ", c.sig), func(t *testing.T) {
				b := newClients(t)
				require.NoError(t, os.MkdirAll(b.cache, 0o755))
				mine := filepath.Join(b.cache, "mine")
				require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o644))
				b.attr = &syscall.SysProcAttr{Setpgid: true}
				p := b.start(b.ranks(n, stage.args...)...)
				pid := p.Process.Pid
				eventually(t, stage.name, func() bool { return stage.in(b, pid) || over(pid) })
				to := map[string]int{"all": -pid, "coordinator": pid}[c.to]
				if to == 0 {
					to = childrenOf(pid)[0]
				}
				require.NoError(t, syscall.Kill(to, c.sig))
				if c.sig == syscall.SIGSTOP && to == pid { // the ranks end without it
					eventually(t, "the end of the other ranks", func() bool {
						return len(inGroup(pid)) == 1
					})
					require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
				}
				o := p.end()
				assert.Equal(t, c.code, o.code, "%s\n%s", o.stdout, o.stderr)
				eventually(t, "the end of all ranks", func() bool { return len(inGroup(pid)) == 0 })
				if c.to == "rank" {
					// One that has not come yet has no name.
					assert.Regexp(t, fmt.Sprintf(`rank \d on \S+ \(pid %d\) %s|`+
						`rank \d \(pid %[1]d\) did not come: signal: killed`, to, c.why),
						o.stdout+o.stderr)
				}
				if measuring && c.sig != syscall.SIGSTOP {
					b.resultsAfter(c.to, c.sig, to)
				}
				if left, _ := filepath.Glob(b.cache + "/*/*"); len(left) > 0 {
					b.nothingLeft(n)
				}
				text, err := os.ReadFile(mine)
				require.NoError(t, err)
				assert.Equal(t, "mine", string(text))
				hidden, err := filepath.Glob(b.cache + "/.*")
				require.NoError(t, err)
				assert.Empty(t, hidden)
			})
		}
	}
}

// resultsAfter checks the results of three ranks after a signal in the window.
func (b *bench) resultsAfter(to string, sig syscall.Signal, pid int) {
	t := b.t
	t.Helper()
	ranks, all := b.resultsOf("option_1", 0)
	for _, r := range ranks {
		assert.Equal(t, result.StatusIncomplete, r.Status)
	}
	switch {
	case to == "rank":
		require.Len(t, ranks, 2)
		require.Len(t, all.Clients.Lost, 1)
		assert.Equal(t, []any{pid, "died: signal: killed"},
			[]any{all.Clients.Lost[0].PID, all.Clients.Lost[0].Why})
	case sig == syscall.SIGKILL:
		require.Len(t, ranks, 2, "rank 0 was the coordinator: the others write their own")
		assert.Nil(t, all)
		assert.Contains(t, ranks[0].Error, "the coordinator is gone")
	default:
		require.Len(t, ranks, 3)
		assert.Contains(t, all.Error, sig.String())
	}
}

// inGroup are the processes of a group that go on.
func inGroup(id int) (list []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, _ := os.ReadFile(file) // one that has ended has none
		// pid (name, which may hold anything) state parent group …
		_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
		fields := strings.Fields(rest)
		if len(fields) > 2 && fields[0] != "Z" && fields[2] == strconv.Itoa(id) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			list = append(list, pid)
		}
	}
	return list
}
