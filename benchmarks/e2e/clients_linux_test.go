package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
)

// newClients is a place to run several clients from, in memory where this user may mount that: on a
// device each trial waits for what others discard there.
func newClients(t testing.TB) *bench {
	b := newBench(t)
	memory := filepath.Join(b.work, "memory")
	require.NoError(t, os.Mkdir(memory, 0o777))
	if syscall.Mount("kvbench", memory, "tmpfs", 0, "size=4g") == nil {
		t.Cleanup(func() { _ = syscall.Unmount(memory, syscall.MNT_DETACH) })
	}
	b.cache = filepath.Join(memory, "cache")
	return b
}

// ranks is a run of several clients that lasts until something ends it.
func (b *bench) ranks(n int, more ...string) []string {
	return append(append(b.micro(), b.places()...), append([]string{
		"-test.bench=MaxStorageStress", "-test.benchtime=10m", "-ranks", strconv.Itoa(n)},
		more...)...)
}

// writing reports whether all ranks have entries.
func (b *bench) writing(n int) bool {
	for rank := range n {
		files, _ := filepath.Glob(filepath.Join(b.cache, fmt.Sprintf("rank_%d/*/*", rank)))
		if len(files) < 3 {
			return false
		}
	}
	return true
}

// children are the processes of a run's ranks, by rank.
func (b *bench) children(p *process, n int) map[int]int {
	b.t.Helper()
	found := map[int]int{0: p.Process.Pid}
	for _, pid := range childrenOf(p.Process.Pid) {
		open, err := filepath.EvalSymlinks(fmt.Sprintf("/proc/%d/fd/1", pid))
		require.NoError(b.t, err)
		rank := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(open), "rank_"), ".log")
		number, err := strconv.Atoi(rank)
		require.NoError(b.t, err, open)
		found[number] = pid
	}
	require.Len(b.t, found, n)
	return found
}

// gone waits until processes have ended.
func (b *bench) gone(pids map[int]int) {
	b.t.Helper()
	eventually(b.t, fmt.Sprint("the end of ", pids), func() bool {
		for _, pid := range pids {
			if !over(pid) {
				return false
			}
		}
		return true
	})
}

// results reads what the ranks of a trial wrote, and the result of all of them.
func (b *bench) resultsOf(group string, trial int) (ranks []*result.Result, all *result.Result) {
	b.t.Helper()
	for _, path := range resultFiles(b.t, filepath.Join(b.results, group,
		fmt.Sprintf("trial_%d", trial))) {
		r := readResult(b.t, path)
		if filepath.Base(filepath.Dir(path)) == "all_ranks" {
			all = r
		} else {
			ranks = append(ranks, r)
		}
	}
	return ranks, all
}

// nothingLeft requires that the next run of the same ranks removes what is left, and leaves
// nothing.
func (b *bench) nothingLeft(n int) {
	b.t.Helper()
	b.results += "-next"
	b.ok(b.few(append(b.places(), "-ranks", strconv.Itoa(n))...)...)
	left, err := filepath.Glob(filepath.Join(b.cache, "*/*"))
	require.NoError(b.t, err)
	assert.Empty(b.t, left)
}

// TestRanks: one line for each trial, made of all ranks, and the same sums in the files.
func TestRanks(t *testing.T) {
	t.Parallel()
	const n, trials = 4, 2
	b := newClients(t)
	o := b.ok(append(append(b.micro(), b.places()...), "-test.bench=MaxStorageStress",
		"-test.benchtime=40x", "-test.count=2", "-ranks=4")...)
	assert.False(t, exists(b.cache), "the ranks remove the directory that they made")
	lines, _ := parse(t, o.stdout)
	require.Len(t, lines, trials)
	assert.Equal(t, "4", lines[0].GetConfig("ranks"))
	assert.Regexp(t, `(?m)^    run.go:\d+: 4 ranks on 1 host, windows opened within .*, `+
		`results of all$`, o.stdout)
	assert.NotContains(t, o.stdout, "rank_1", "the others print into their logs")
	for trial := range trials {
		ranks, all := b.resultsOf("option_1", trial)
		require.Len(t, ranks, n)
		require.NotNil(t, all)
		assert.Equal(t, []int{0, 1, 2, 3}, all.MergedRanks)
		assert.Equal(t, result.StatusComplete, all.Status, all.Error)
		var requests, read, written int64
		var readRate float64
		for rank, r := range ranks {
			assert.Equal(t, []any{rank, n, uint64(42 + rank), ranks[0].Nonce},
				[]any{r.Rank, r.Ranks, r.Seed, r.Nonce})
			in, out := r.StorageTraffic()
			requests += r.Requests.Completed
			read, written = read+in.Bytes, written+out.Bytes
			readRate += *in.BytesPerSecond
			assert.Equal(t, fmt.Sprintf("option_1/trial_%d/rank_%d", trial, rank),
				filepath.Dir(all.Clients.PerRank[rank].Path))
			assert.FileExists(t, filepath.Join(b.results, all.Clients.PerRank[rank].Path))
		}
		in, out := all.StorageTraffic()
		assert.Equal(t, []int64{requests, read, written},
			[]int64{all.Requests.Completed, in.Bytes, out.Bytes})
		assert.InEpsilon(t, readRate, *in.BytesPerSecond, 1e-12)
		line, ok := value(lines[trial], "read-B/s")
		assert.True(t, ok)
		assert.InEpsilon(t, readRate, line, 1e-6, "as many digits as the testing package prints")
		_, ok = value(lines[trial], "start-skew-ns")
		assert.True(t, ok)
		assert.Equal(t, "kvbench", all.Clients.Launcher)
		assert.Empty(t, all.Clients.Lost)
	}
	assert.FileExists(t, filepath.Join(b.results, merge.SummaryFile))
	left, err := filepath.Glob(filepath.Join(b.cache, "*/*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// TestRankFailureContinue lets the others come to the end of their windows, and of the other
// trials.
func TestRankFailureContinue(t *testing.T) {
	t.Parallel()
	b := newClients(t)
	var ranks []*result.Result
	var all *result.Result
	// Where the window was over before the rank was killed, a longer one is taken.
	for window := 6 * time.Second; len(ranks) != 2; window *= 2 {
		require.Less(t, window, patience)
		b.results += "-again"
		p := b.start(b.ranks(3, "-test.benchtime="+window.String(), "-test.count=2",
			"-rank-failure=continue")...)
		eventually(t, "entries of all ranks, or the end", func() bool {
			return over(p.Process.Pid) || b.writing(3)
		})
		if ranks := childrenOf(p.Process.Pid); len(ranks) > 0 {
			_ = syscall.Kill(ranks[0], syscall.SIGKILL) // unless it has ended
		}
		o := p.end()
		if ranks, all = b.resultsOf("option_1", 0); len(ranks) == 2 {
			assert.Equal(t, exitFailed, o.code)
			assert.Contains(t, o.stdout, "1 of 2 trials are not begun: ")
		}
	}
	for _, r := range ranks {
		assert.Equal(t, []any{result.StatusComplete, result.EndedByDeadline},
			[]any{r.Status, r.EndedBy})
	}
	assert.Equal(t, result.StatusIncomplete, all.Status)
	assert.Regexp(t, `rank [12] of 3 is missing; rank [12] on `, all.Error)
	b.nothingLeft(3)
}

// TestARankThatCannotStart: a file of the user in the directory of one rank fails the run.
func TestARankThatCannotStart(t *testing.T) {
	t.Parallel()
	b := newClients(t)
	args := append(append(b.micro(), b.places()...), "-test.bench=MaxStorageStress")
	require.NoError(t, os.MkdirAll(filepath.Join(b.cache, "rank_1"), 0o755))
	notes := filepath.Join(b.cache, "rank_1", "notes.txt")
	require.NoError(t, os.WriteFile(notes, []byte("mine"), 0o644))
	o := b.run(append(args, "-ranks=2", "-test.benchtime=100ms", "-test.count=2")...)
	assert.Equal(t, exitFailed, o.code)
	assert.Contains(t, o.stdout, "no marker of ours")
	assert.FileExists(t, notes)
	left, err := filepath.Glob(filepath.Join(b.cache, "rank_0/*/*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}
