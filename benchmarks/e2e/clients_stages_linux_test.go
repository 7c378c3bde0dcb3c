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

// TestSignalsToRanks: no process of the run goes on, the exit code is that of the signal, a lost rank
// is named, the others keep results, the next run removes what is left, and a user's file stays.
func TestSignalsToRanks(t *testing.T) {
	t.Parallel()
	const n = 3
	meeting := func(_ *bench, pid int) bool { return len(childrenOf(pid)) == n-1 }
	measuring := func(b *bench, _ int) bool { return b.writing(n) }
	between := func(b *bench, _ int) bool { return exists(b.results + "/option_1/trial_1/all_ranks") }
	trials := []string{"-test.benchtime=1x", "-test.count=100"}
	for _, c := range []struct {
		stage string
		in    func(b *bench, pid int) bool // reports whether the run of that process is in the stage
		args  []string
		to    string
		sig   syscall.Signal
		code  int
		why   string // of a lost rank
	}{
		{"meeting", meeting, []string{"-rendezvous-timeout=10s"}, "rank", syscall.SIGKILL,
			exitFailed, "died: signal: killed"},
		{"measuring", measuring, nil, "all", syscall.SIGINT, 130, ""}, // from a terminal
		{"measuring", measuring, nil, "coordinator", syscall.SIGKILL, -1, ""},
		{"measuring", measuring, nil, "coordinator", syscall.SIGSTOP, exitFailed, ""},
		{"measuring", measuring, nil, "rank", syscall.SIGKILL, exitFailed, "died: signal: killed"},
		{"measuring", measuring, nil, "rank", syscall.SIGSTOP, exitFailed, "has not answered for 4s"},
		{"between trials", between, trials, "coordinator", syscall.SIGTERM, 143, ""},
	} {
		t.Run(fmt.Sprint(c.stage, " ", c.to, " ", c.sig), func(t *testing.T) {
			t.Parallel()
			b := newClients(t)
			require.NoError(t, os.MkdirAll(b.cache, 0o755))
			mine := filepath.Join(b.cache, "mine")
			require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o644))
			b.attr = &syscall.SysProcAttr{Setpgid: true}
			p := b.start(b.ranks(n, c.args...)...)
			pid := p.Process.Pid
			eventually(t, c.stage, func() bool { return c.in(b, pid) || over(pid) })
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
				// A rank that has not met the others has no name.
				assert.Regexp(t, fmt.Sprintf(`rank \d on \S+ \(pid %d\) %s|`+
					`rank \d \(pid %[1]d\) did not come: signal: killed`, to, c.why),
					o.stdout+o.stderr)
			}
			if c.stage == "measuring" && c.sig != syscall.SIGSTOP {
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
