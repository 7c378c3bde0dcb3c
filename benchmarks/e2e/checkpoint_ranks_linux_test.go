package e2e

import (
	"encoding/json"
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

// TestCheckpointsOfSeveralRanks: ranks write one checkpoint in one directory and read what others
// wrote. The test computes each number of the whole from the files of the ranks.
func TestCheckpointsOfSeveralRanks(t *testing.T) {
	t.Parallel()
	const n = 4
	b := newClients(t)
	o := b.ok(append(b.places(), "-test.bench=Checkpoint$", "-checkpoint-scale=1/8192",
		"-stream-chunk=64KiB", "-checkpoint-shift=2", "-verify=full", "-ranks=4")...)
	assert.Regexp(t, `(?m)^    run.go:\d+: 4 ranks on 1 host, windows opened within .*, `+
		`results of all$`, o.stdout)
	assert.NotContains(t, o.stdout, "A PART")
	for _, op := range []string{"write", "read"} {
		group := "Checkpoint_model=8b_op=" + op
		ranks, all := b.resultsOf(group, 0)
		require.Len(t, ranks, n)
		require.NotNil(t, all)
		assert.Equal(t, result.StatusComplete, all.Status, all.Error)
		whole := append(all.Checkpoint.Writes, all.Checkpoint.Reads...)
		require.Len(t, whole, 2)
		mean := 0.0
		for i, run := range whole {
			var bytes, slowest int64
			for rank, r := range ranks {
				c := r.Checkpoint
				assert.Equal(t, []int{2 * rank, 2}, []int{*c.First, *c.Count})
				part := append(c.Writes, c.Reads...)[i]
				bytes, slowest = bytes+part.Bytes, max(slowest, part.DurationNS)
			}
			assert.Equal(t, all.Checkpoint.Bytes, bytes)
			assert.Equal(t, []int64{bytes, slowest}, []int64{run.Bytes, run.DurationNS})
			mean += float64(bytes) / (float64(slowest) / 1e9) / float64(len(whole))
		}
		assert.Equal(t, op == "read", whole[0].VerifiedBytes > 0)
		assert.InEpsilon(t, mean, result.Sum(whole).Rate, 1e-9)
		text, err := os.ReadFile(filepath.Join(b.results, group, "trial_0", "all_ranks",
			"checkpoint_summary.json"))
		require.NoError(t, err)
		var s struct{ Metric map[string]float64 }
		require.NoError(t, json.Unmarshal(text, &s))
		key := map[string]string{"write": "save", "read": "load"}[op] +
			"_checkpoint_io_mean_GB_per_second"
		assert.InEpsilon(t, mean/(1<<30), s.Metric[key], 1e-9)
		assert.False(t, exists(filepath.Join(b.results, group, "trial_0/rank_1",
			"checkpoint_summary.json")), "of a part it would look like one of the whole")
	}
	assert.False(t, exists(b.cache+"/ckpt_8b"))
}

// TestCheckpointsOfRanksThatAreLost: when a rank is killed, also the one that made the directory, the
// others end with what they have, and the next run removes what is left.
func TestCheckpointsOfRanksThatAreLost(t *testing.T) {
	t.Parallel()
	b := newClients(t)
	run := append(b.places(), "-test.bench=Checkpoint/model=8b/op=write", "-ranks=3",
		"-checkpoint-accelerators=3", "-checkpoint-scale=1/1024", "-checkpoint-keep=2",
		"-checkpoint-writes=1000", "-checkpoint-reads=0")
	results, foreign := b.results, b.cache+"/ckpt_8b/global_epoch1_step2/mine"
	for rank := range 2 {
		b.results = fmt.Sprintf("%s-%d", results, rank)
		p := b.start(append(run, "-results-dir="+b.results)...)
		eventually(t, "a second checkpoint", func() bool {
			files, _ := filepath.Glob(b.cache + "/ckpt_8b/global_epoch1_step2/*.pt")
			return len(files) == 6
		})
		require.NoError(t, os.WriteFile(foreign, []byte("mine"), 0o644))
		pids := b.children(p, 3)
		require.NoError(t, syscall.Kill(pids[rank], syscall.SIGKILL))
		o := p.end()
		b.gone(pids)
		if rank > 0 {
			assert.Equal(t, 1, o.code, o.stderr)
			assert.Contains(t, o.stdout, fmt.Sprintf("rank %d on ", rank))
			assert.Contains(t, o.stdout, "signal: killed")
		}
	}
	b.results = results
	b.ok(append(b.checkpoints(), "-ranks=2")...)
	files, err := filepath.Glob(b.cache + "/ckpt_8b/*/*")
	require.NoError(t, err)
	assert.Equal(t, []string{foreign}, files)
}

// childrenOf are the processes that a process has started.
func childrenOf(pid int) (list []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		text, _ := os.ReadFile(file) // of a thread that has ended there are none
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}

// over reports whether a process has ended, waited for or not.
func over(pid int) bool {
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(state), ") Z ")
}
