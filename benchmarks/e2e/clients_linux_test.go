package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/tools/submission"
)

// newClients is a place to run several clients from, in memory where this user may mount that.
func newClients(t testing.TB) *bench {
	b := newBench(t)
	b.inMemory()
	b.attr = &syscall.SysProcAttr{Setpgid: true}
	return b
}

// inMemory puts the cache directory, and the temporary directory with the default one, into memory where
// this user may mount that. On a device each trial waits for what other tests discard there.
func (b *bench) inMemory() {
	b.t.Helper()
	memory := filepath.Join(b.work, "memory")
	require.NoError(b.t, os.Mkdir(memory, 0o777))
	if syscall.Mount("kvbench", memory, "tmpfs", 0, "size=5g") == nil {
		b.t.Cleanup(func() { _ = syscall.Unmount(memory, syscall.MNT_DETACH) })
	}
	temp := filepath.Join(memory, "tmp")
	require.NoError(b.t, os.Mkdir(temp, 0o777))
	b.cache, b.env = filepath.Join(memory, "cache"), append(b.env, "TMPDIR="+temp)
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

// resultsOf reads what the ranks of a trial wrote, and the result of all of them.
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

// TestRanks: each trial of each option has one line, made of all ranks, the files have the same sums,
// and they make the tree of a submission.
func TestRanks(t *testing.T) {
	t.Parallel()
	const n, trials = 2, 3
	b := newClients(t)
	o := b.ok(append(append(b.micro(), b.places()...),
		"-test.bench=MaxStorageStress|StorageThroughput|LargeModel", "-test.benchtime=5x",
		"-test.count=3", "-ranks=2", "-division=open", "-model=tiny-1b", "-num-users=2",
		"-cpu-mem-gb=0", "-storage-capacity-gb=0.6", "-summary=long", "-results-format=python")...)
	assert.False(t, exists(b.cache), "the ranks remove the directory that they made")
	lines, _ := parse(t, o.stdout)
	require.Len(t, lines, 3*trials)
	assert.Equal(t, "2", lines[0].GetConfig("ranks"))
	assert.Regexp(t, `\nclients +2 ranks on 1 host, windows opened within .*, results of all\n`, o.stderr)
	assert.NotContains(t, o.stdout, "rank_1", "the others print into their logs")
	for trial := range trials {
		ranks, all := b.resultsOf("option_1", trial)
		require.Len(t, ranks, n)
		require.NotNil(t, all)
		assert.Equal(t, []int{0, 1}, all.MergedRanks)
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
			data, err := os.ReadFile(filepath.Join(b.results, all.Clients.PerRank[rank].Path))
			require.NoError(t, err)
			python, err := result.ParsePython(data)
			require.NoError(t, err)
			assert.EqualValues(t, r.Requests.Completed, python.Number("summary.total_requests"))
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
	b.submits(n, trials)
}

// submits requires that the results of three options make the tree of an open submission.
func (b *bench) submits(ranks, trials int) {
	s := submission.Submission{Dir: b.results, Out: filepath.Join(b.work, "tree"),
		Organisation: "acme", System: "flash7", Division: "open"}
	require.NoError(b.t, s.Validate())
	var said []string
	built, err := s.Run(io.Discard, func(line string) { said = append(said, line) })
	require.NoError(b.t, err)
	require.True(b.t, built, said)
	assert.FileExists(b.t, filepath.Join(s.Out, "open/acme/systems/flash7.yaml"))
	runs, err := filepath.Glob(filepath.Join(s.Out,
		"open/acme/results/flash7/kv_cache/tiny-1b/run/*"))
	require.NoError(b.t, err)
	require.Len(b.t, runs, 1)
	assert.Len(b.t, resultFiles(b.t, runs[0]), 3*trials*ranks)
	text, err := os.ReadFile(filepath.Join(runs[0], "summary.json"))
	require.NoError(b.t, err)
	var summary struct {
		Ranks          int  `json:"total_ranks"`
		PartialFailure bool `json:"partial_failure"`
		Options        map[string]map[string]any
	}
	require.NoError(b.t, json.Unmarshal(text, &summary))
	assert.Equal(b.t, ranks, summary.Ranks)
	assert.False(b.t, summary.PartialFailure)
	require.Len(b.t, summary.Options, 3)
	for _, o := range summary.Options {
		assert.Equal(b.t, []any{float64(ranks), float64(trials), []any{}},
			[]any{o["rank_count"], o["trial_count"], o["missing_files"]})
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
			return len(inGroup(p.Process.Pid)) == 0 || b.writing(3)
		})
		if ranks := started(p.Process.Pid); len(ranks) > 0 {
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

// TestRanksThatStandStill in the window, first a rank and then the coordinator: the run goes on to its end, and the
// merged result has both pauses, for which it is not quoted.
func TestRanksThatStandStill(t *testing.T) {
	t.Parallel()
	b := newClients(t)
	// Where the window was over before the stops were, a longer one is taken.
	for window := 12 * time.Second; ; window *= 2 {
		require.Less(t, window, patience)
		b.results += "-again"
		p := b.start(b.ranks(2, "-test.benchtime="+window.String(), "-division=open", "-model=tiny-1b",
			"-num-users=2", "-cpu-mem-gb=0", "-storage-capacity-gb=0.6")...)
		eventually(t, "entries of all ranks", func() bool { return b.writing(2) })
		for _, pid := range append(started(p.Process.Pid), p.Process.Pid) {
			require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
			stopped := time.Now()
			eventually(t, "time passes", func() bool { return time.Since(stopped) > 4500*time.Millisecond })
			require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
		}
		o := p.end()
		require.Zero(t, o.code, o.stderr)
		ranks, all := b.resultsOf("option_1", 0)
		require.Len(t, ranks, 2)
		require.Equal(t, result.StatusComplete, all.Status, all.Error)
		require.Len(t, all.Pauses, 2)
		if !all.Pauses[0].InWindow || !all.Pauses[1].InWindow {
			continue
		}
		for rank, pause := range all.Pauses {
			assert.Equal(t, []any{rank, false}, []any{pause.Rank, pause.Silent})
			assert.Greater(t, pause.LengthNS, int64(4*time.Second))
			assert.Contains(t, report.Doubts([]*result.Result{all}, "read-B/s"), pause.Why())
		}
		return
	}
}

// TestSignalsToRanks: no process of the run goes on, the exit code is that of the signal, a lost rank
// is named, the others keep results, the next run removes what is left, and a user's file stays.
func TestSignalsToRanks(t *testing.T) {
	t.Parallel()
	const n = 3
	meeting := func(_ *bench, pid int) bool { return len(started(pid)) == n-1 }
	measuring := func(b *bench, _ int) bool { return b.writing(n) }
	between := func(b *bench, _ int) bool { return exists(b.results + "/option_1/trial_1/all_ranks") }
	trials := []string{"-test.benchtime=1x", "-test.count=100"}
	soon := []string{"-rank-timeout=4s"}
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
		{"measuring", measuring, soon, "coordinator", syscall.SIGSTOP, exitFailed, ""},
		{"measuring", measuring, nil, "rank", syscall.SIGKILL, exitFailed, "died: signal: killed"},
		{"measuring", measuring, soon, "rank", syscall.SIGSTOP, exitFailed, "has not answered for 4s"},
		{"between trials", between, trials, "coordinator", syscall.SIGTERM, 143, ""},
	} {
		t.Run(fmt.Sprint(c.stage, " ", c.to, " ", c.sig), func(t *testing.T) {
			t.Parallel()
			b := newClients(t)
			require.NoError(t, os.MkdirAll(b.cache, 0o755))
			mine := filepath.Join(b.cache, "mine")
			require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o644))
			p := b.start(b.ranks(n, c.args...)...)
			pid := p.Process.Pid
			eventually(t, c.stage, func() bool {
				return c.in(b, pid) || len(inGroup(pid)) == 0
			})
			to := map[string]int{"all": -pid, "coordinator": pid}[c.to]
			if to == 0 {
				to = started(pid)[0]
			}
			require.NoError(t, syscall.Kill(to, c.sig))
			if c.sig == syscall.SIGSTOP && to == pid { // the ranks end without it
				eventually(t, "the end of the other ranks", func() bool { return len(started(pid)) == 0 })
				require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
			}
			o := p.end()
			assert.Equal(t, c.code, o.code, "%s\n%s", o.stdout, o.stderr)
			gone(t, pid)
			if c.to == "rank" {
				// A rank that has not met the others has no name.
				assert.Regexp(t, fmt.Sprintf(`rank \d on \S+ \(pid %d\) %s|`+
					`rank \d \(pid %[1]d\) ended before it connected: signal: killed`, to, c.why),
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

// inGroup are the processes of a run that have not ended: the coordinator, whose id the group has, and
// the ranks that it started.
func inGroup(id int) (list []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, _ := os.ReadFile(file) // a process that has just ended has none
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

// started are the ranks that a coordinator has started and that have not ended.
func started(coordinator int) []int {
	return slices.DeleteFunc(inGroup(coordinator), func(pid int) bool { return pid == coordinator })
}

// gone waits until all processes of a run have ended.
func gone(t testing.TB, coordinator int) {
	t.Helper()
	eventually(t, "the end of all ranks", func() bool { return len(inGroup(coordinator)) == 0 })
}
