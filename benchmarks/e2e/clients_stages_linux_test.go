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
)

// stageOfRanks is one that a run of several ranks goes through, and what keeps it there.
type stageOfRanks struct {
	name string
	args []string
	in   func(b *bench, pid int) bool // the run whose process that is
}

// stagesOfRanks are those of n ranks: they come together, rest, write before the window, warm up,
// measure, and are between two trials.
func stagesOfRanks(n int) []stageOfRanks {
	in := func(files string, least int) func(*bench, int) bool {
		return func(b *bench, _ int) bool {
			for rank := range n {
				there, _ := filepath.Glob(filepath.Join(b.cache, fmt.Sprint("rank_", rank), files))
				if len(there) < least {
					return false
				}
			}
			return true
		}
	}
	return []stageOfRanks{
		{"coming together", []string{"-rendezvous-timeout=10s"}, func(_ *bench, pid int) bool {
			return len(childrenOf(pid)) == n-1 // the first of all is the Go runtime's, and no rank
		}},
		{"resting", []string{"-settle=10m"}, in(".kvbench.json", 1)},
		{"preconditioning", []string{"-precondition", "-precondition-size-gb=1000"}, in("*/*", 3)},
		{"warming up", []string{"-warmup=10m"}, in("*/*", 3)},
		{"measuring", nil, in("*/*", 3)},
		{"between trials", []string{"-test.benchtime=1x", "-test.count=100"},
			func(b *bench, _ int) bool {
				return exists(b.results + "/option_1/trial_1/all_ranks")
			}},
	}
}

// reach starts a run of n ranks, in a group of processes of their own, and waits for a stage of it.
func (b *bench) reach(n int, stage stageOfRanks) *process {
	b.t.Helper()
	b.attr = &syscall.SysProcAttr{Setpgid: true}
	p := b.start(b.ranks(n, stage.args...)...)
	pid := p.Process.Pid
	eventually(b.t, stage.name, func() bool { return stage.in(b, pid) || over(pid) })
	return p
}

// foreign puts a file of somebody else's into the cache directory, and checks it in the end.
func (b *bench) foreign() (check func()) {
	require.NoError(b.t, os.MkdirAll(b.cache, 0o755))
	mine := filepath.Join(b.cache, "mine")
	require.NoError(b.t, os.WriteFile(mine, []byte("mine"), 0o644))
	return func() {
		left, err := filepath.Glob(b.cache + "/.*")
		require.NoError(b.t, err)
		assert.Empty(b.t, left)
		text, err := os.ReadFile(mine)
		require.NoError(b.t, err)
		assert.Equal(b.t, "mine", string(text))
	}
}

// TestSignalsToRanksInEveryStage: Ctrl-C, SIGTERM and SIGKILL of a run of ranks of this host. No
// process goes on, exit codes tell of signals, what is left goes with the next start, and what is
// not the run's own stays.
func TestSignalsToRanksInEveryStage(t *testing.T) {
	t.Parallel()
	const n = 3
	for _, stage := range stagesOfRanks(n) {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
			t.Run(stage.name+" "+sig.String(), func(t *testing.T) {
				b := newClients(t)
				check := b.foreign()
				p := b.reach(n, stage)
				pid := p.Process.Pid
				to, code := pid, 128+int(sig)
				switch sig {
				case syscall.SIGINT: // a terminal tells all of them
					to = -pid
				case syscall.SIGKILL:
					code = -1
				}
				require.NoError(t, syscall.Kill(to, sig))
				o := p.end()
				assert.Equal(t, code, o.code, "%s\n%s", o.stdout, o.stderr)
				eventually(t, "the end of all ranks", func() bool { return len(inGroup(pid)) == 0 })
				if left, _ := filepath.Glob(b.cache + "/*/*"); len(left) > 0 {
					b.nothingLeft(n)
				}
				check()
			})
		}
	}
}

// TestALostRankInEveryStage: one that dies, or does not go on, is named with the reason, the others
// end, and what is left goes with the next start.
func TestALostRankInEveryStage(t *testing.T) {
	t.Parallel()
	const n = 3
	for i, stage := range stagesOfRanks(n) {
		for sig, why := range map[syscall.Signal]string{
			syscall.SIGKILL: "died: signal: killed", syscall.SIGSTOP: "has not answered for 4s"} {
			t.Run(stage.name+" "+sig.String(), func(t *testing.T) {
				b := newClients(t)
				check := b.foreign()
				p := b.reach(n, stage)
				pid := p.Process.Pid
				children := childrenOf(pid)
				require.NotEmpty(t, children)
				// Each of them in turn, with either signal; the first rank is the coordinator.
				lost := children[(i+int(sig))%len(children)]
				require.NoError(t, syscall.Kill(lost, sig))
				o := p.end()
				assert.Equal(t, exitFailed, o.code)
				// One that has not come yet has no name, and is waited for.
				assert.Regexp(t, fmt.Sprintf(`rank \d on \S+ \(pid %d\) %s|`+
					`rank \d \(pid %[1]d\) did not come: (signal: killed|it is stopped)|`+
					`\d of 3 ranks came within 10(\.\d)?s; missing`, lost, why), o.stdout+o.stderr)
				eventually(t, "the end of all ranks", func() bool { return len(inGroup(pid)) == 0 })
				b.nothingLeft(n)
				check()
			})
		}
	}
}

// TestAStoppedCoordinatorInEveryStage: the ranks do not wait for one that has stopped. They end by
// themselves; it finds them gone when it goes on, fails, and leaves nothing that stays.
func TestAStoppedCoordinatorInEveryStage(t *testing.T) {
	t.Parallel()
	const n = 3
	for _, stage := range stagesOfRanks(n) {
		t.Run(stage.name, func(t *testing.T) {
			b := newClients(t)
			check := b.foreign()
			p := b.reach(n, stage)
			pid := p.Process.Pid
			require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
			eventually(t, "the end of the other ranks", func() bool {
				return len(inGroup(pid)) == 1
			})
			require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
			o := p.end()
			assert.Equal(t, exitFailed, o.code, "%s\n%s", o.stdout, o.stderr)
			eventually(t, "the end of all ranks", func() bool { return len(inGroup(pid)) == 0 })
			b.nothingLeft(n)
			check()
		})
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
