package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/merge/summary"
	results "kvbench/kvbench/merge/tree"
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

// allWrite waits until all ranks write entries.
func (b *bench) allWrite(n int) {
	b.t.Helper()
	eventually(b.t, "entries of all ranks in "+b.cache, func() bool { return b.writing(n) })
}

// writing tells whether all ranks have entries.
func (b *bench) writing(n int) bool {
	for rank := range n {
		files, _ := filepath.Glob(filepath.Join(b.cache, fmt.Sprintf("rank_%d/*/*", rank)))
		if len(files) < 3 {
			return false
		}
	}
	return true
}

// pids are those of the ranks that a run has started, by rank, once all of them write entries.
func (b *bench) pids(p *process, n int) map[int]int {
	b.t.Helper()
	b.allWrite(n)
	return b.children(p, n)
}

// children are the processes of a run's ranks, by rank.
func (b *bench) children(p *process, n int) map[int]int {
	b.t.Helper()
	found := map[int]int{0: p.Process.Pid}
	children, err := exec.Command("pgrep", "-P", strconv.Itoa(p.Process.Pid)).Output()
	require.NoError(b.t, err)
	for text := range strings.FieldsSeq(string(children)) {
		pid, err := strconv.Atoi(text)
		require.NoError(b.t, err)
		open, err := filepath.EvalSymlinks(filepath.Join("/proc", text, "fd/1"))
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
			state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			// one that nobody has waited for is as good as gone
			if err == nil && !strings.Contains(string(state), ") Z ") {
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
		text, err := os.ReadFile(path)
		require.NoError(b.t, err)
		r, err := result.Parse(text)
		require.NoError(b.t, err)
		if filepath.Base(filepath.Dir(path)) == "all_ranks" {
			all = r
		} else {
			ranks = append(ranks, r)
		}
	}
	return ranks, all
}

// nothingLeft wants the next run of the same ranks to find nothing that is not its own, and to
// leave nothing.
func (b *bench) nothingLeft(n int) {
	b.t.Helper()
	b.results += "-next"
	b.ok(append(append(b.micro(), b.places()...), "-test.bench=Synthetic", "-test.benchtime=5x",
		"-ranks", strconv.Itoa(n))...)
	left, err := filepath.Glob(filepath.Join(b.cache, "*/*"))
	require.NoError(b.t, err)
	assert.Empty(b.t, left)
}

// Ranks that have to share a processor say so.
func TestRanksOnOneProcessor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := exec.LookPath("taskset"); err != nil || runtime.NumCPU() < 2 {
		t.Skipf("one of several processors cannot be chosen: %v", err)
	}
	b.command = []string{"taskset", "-c", "0", binary(t), "-test.run=^$"}
	b.ok(append(append(b.micro(), b.places()...), "-test.bench=Synthetic", "-test.benchtime=40x",
		"-ranks=2")...)
	ranks, _ := b.resultsOf("Synthetic", 0)
	require.Len(t, ranks, 2)
	assert.Contains(t, strings.Join(ranks[0].Warnings, "\n"),
		"2 ranks share 1 processor of "+strconv.Itoa(runtime.NumCPU()))
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
		var requests, tokens, read, written, cpu int64
		var readRate float64
		for rank, r := range ranks {
			assert.Equal(t, []any{rank, n, uint64(42 + rank), ranks[0].Nonce},
				[]any{r.Rank, r.Ranks, r.Seed, r.Nonce})
			in, out := r.StorageTraffic()
			requests, tokens = requests+r.Requests.Completed, tokens+r.TotalTokensGenerated
			read, written = read+in.Bytes, written+out.Bytes
			cpu += r.Harness.CPUNS
			readRate += *in.BytesPerSecond
			assert.Equal(t, fmt.Sprintf("option_1/trial_%d/rank_%d", trial, rank),
				filepath.Dir(all.Clients.PerRank[rank].Path))
			assert.FileExists(t, filepath.Join(b.results, all.Clients.PerRank[rank].Path))
		}
		in, out := all.StorageTraffic()
		assert.Equal(t, []int64{requests, tokens, read, written, cpu}, []int64{
			all.Requests.Completed, all.TotalTokensGenerated, in.Bytes, out.Bytes,
			all.Harness.CPUNS})
		assert.InEpsilon(t, readRate, *in.BytesPerSecond, 1e-12)
		line, ok := value(lines[trial], "read-B/s")
		assert.True(t, ok)
		assert.InEpsilon(t, readRate, line, 1e-6, "as many digits as the testing package prints")
		_, ok = value(lines[trial], "start-skew-ns")
		assert.True(t, ok)
		assert.Equal(t, "kvbench", all.Clients.Launcher)
		assert.Empty(t, all.Clients.Lost)
	}
	// The summary is what kvreport aggregate makes of the same files, by the same code.
	found, err := results.Read(b.results)
	require.NoError(t, err)
	require.Len(t, found.Files, n*trials)
	again := summary.Aggregate(found)
	var want bytes.Buffer
	require.NoError(t, again.WriteJSON(&want))
	text, err := os.ReadFile(filepath.Join(b.results, summary.FileName))
	require.NoError(t, err)
	assert.Equal(t, want.String(), string(text))
	assert.Equal(t, []any{n, trials, false}, []any{again.Options["1"].RankCount,
		again.Options["1"].TrialCount, again.PartialFailure})
	left, err := filepath.Glob(filepath.Join(b.cache, "*/*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// TestALostRank: it is named, the others keep what they have, and the next run finds nothing left.
func TestALostRank(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal syscall.Signal
		why    string
	}{
		{syscall.SIGKILL, "died: signal: killed"},
		{syscall.SIGSTOP, "has not answered for 4s"},
	} {
		t.Run(c.signal.String(), func(t *testing.T) {
			b := newClients(t)
			p := b.start(b.ranks(3)...)
			pids := b.pids(p, 3)
			require.NoError(t, syscall.Kill(pids[2], c.signal))
			o := p.end()
			assert.Equal(t, exitFailed, o.code)
			host, _ := os.Hostname()
			assert.Regexp(t, fmt.Sprintf(`rank 2 on %s \(pid %d\) %s, in the window of trial 0 of `+
				`MaxStorageStress`, regexp.QuoteMeta(host), pids[2], c.why), o.stdout)
			assert.NotRegexp(t, `(?m)^BenchmarkMaxStorageStress\S*\s+1\s+\d`, o.stdout,
				"no numbers")
			b.gone(pids)
			kept, err := filepath.Glob(filepath.Join(b.cache, "rank_2/*/*"))
			require.NoError(t, err)
			assert.Regexp(t, fmt.Sprintf(`\nleft behind %d files \(\d\.\d\d GiB\) in %s/rank_2, `,
				len(kept), regexp.QuoteMeta(b.cache)), o.stderr, "by the rank that is lost")
			ranks, all := b.resultsOf("option_1", 0)
			require.Len(t, ranks, 2)
			for rank, r := range ranks {
				assert.Equal(t, []any{rank, result.StatusIncomplete}, []any{r.Rank, r.Status})
			}
			require.Len(t, all.Clients.Lost, 1)
			assert.Equal(t, []any{2, pids[2], c.why}, []any{all.Clients.Lost[0].Rank,
				all.Clients.Lost[0].PID, all.Clients.Lost[0].Why})
			b.nothingLeft(3)
		})
	}
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

// TestSignalsToTheCoordinator: all ranks end with results, or, where nobody collects them any more,
// write them themselves.
func TestSignalsToTheCoordinator(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, 130}, {syscall.SIGKILL, -1}} {
		t.Run(c.signal.String(), func(t *testing.T) {
			b := newClients(t)
			p := b.start(b.ranks(3)...)
			pids := b.pids(p, 3)
			require.NoError(t, p.Process.Signal(c.signal))
			assert.Equal(t, c.code, p.end().code)
			b.gone(pids)
			ranks, all := b.resultsOf("option_1", 0)
			if c.signal == syscall.SIGKILL {
				require.Len(t, ranks, 2, "rank 0 was the coordinator")
				assert.Nil(t, all)
				assert.Contains(t, ranks[0].Error, "the coordinator is gone")
			} else {
				require.Len(t, ranks, 3)
				assert.Contains(t, all.Error, c.signal.String())
			}
			for _, r := range ranks {
				assert.Equal(t, result.StatusIncomplete, r.Status)
			}
			b.nothingLeft(3)
		})
	}
}

// TestRanksThatCannotStart: what is wrong is told once, and nothing was made.
func TestRanksThatCannotStart(t *testing.T) {
	t.Parallel()
	b := newClients(t)
	args := append(append(b.micro(), b.places()...), "-test.bench=MaxStorageStress")
	o := b.run(append(args, "-ranks=1025", "-local-ranks=2", "-rank-failure=stop")...)
	assert.Equal(t, exitParameters, o.code)
	assert.Contains(t, o.stderr,
		"-ranks: must be at most 1024 where this run starts them, given 1025")
	assert.Contains(t, o.stderr, "-local-ranks: must be absent where this run starts the ranks")
	o = b.run(append(args, "-rank-failure=continue")...)
	assert.Equal(t, exitParameters, o.code)
	assert.Contains(t, o.stderr, "-rank-failure: must be absent with one client")
	assert.NoDirExists(t, b.cache)
	assert.NoDirExists(t, b.results)
	// A rank whose directory is somebody else's fails for all, and says why.
	require.NoError(t, os.MkdirAll(filepath.Join(b.cache, "rank_1"), 0o755))
	notes := filepath.Join(b.cache, "rank_1", "notes.txt")
	require.NoError(t, os.WriteFile(notes, []byte("mine"), 0o644))
	o = b.run(append(args, "-ranks=2", "-test.benchtime=100ms", "-test.count=2")...)
	assert.Equal(t, exitFailed, o.code)
	assert.Contains(t, o.stdout, "no marker of ours")
	assert.FileExists(t, notes)
	left, err := filepath.Glob(filepath.Join(b.cache, "rank_0/*/*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// TestRankOfTheOldKind keeps its meaning: one of several that others start, with a result of its
// own.
func TestRankOfTheOldKind(t *testing.T) {
	t.Parallel()
	b := newClients(t)
	o := b.ok(append(append(b.micro(), b.places()...), "-test.bench=MaxStorageStress",
		"-test.benchtime=5x", "-rank=0", "-ranks=4")...)
	assert.Contains(t, o.stdout, "\nranks: 4\n")
	r := theResult(t, b.results)
	assert.Equal(t, []any{0, 4, 0}, []any{r.Rank, r.Ranks, len(r.MergedRanks)})
}

// TestWhatAShellSaysThatHangs: a shell that never brings its rank may have said why.
func TestWhatAShellSaysThatHangs(t *testing.T) {
	t.Parallel()
	b := newClients(t)
	shell := filepath.Join(b.work, "shell")
	require.NoError(t, os.WriteFile(shell,
		[]byte("#!/bin/sh\necho the gate is closed >&2\nexec sleep 1000\n"), 0o755))
	o := b.run(b.short("-hosts=localhost:1,far:1", "-ssh="+shell, "-remote-binary=/far/kvbench",
		"-rendezvous-timeout=3s")...)
	assert.Equal(t, exitFailed, o.code)
	assert.Regexp(t, `^kvbench: \d of 2 ranks came within \S+; missing .*1\n`+
		`  rank 1 on far; the gate is closed \(logs of the ranks: .*rank_\*\.log\)\n`, o.stderr)
	assert.NoDirExists(t, b.cache)
}
