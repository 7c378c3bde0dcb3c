package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

// TestCheckpointsOfSeveralRanks: ranks write one checkpoint in one directory and read what others
// wrote.
func TestCheckpointsOfSeveralRanks(t *testing.T) {
	t.Parallel()
	const n = 4
	b := newClients(t)
	o := b.ok(append(b.places(), "-test.bench=Checkpoint$", "-checkpoint-scale=1/8192",
		"-stream-chunk=64KiB", "-checkpoint-shift=2", "-verify=full", "-ranks=4", "-summary=long")...)
	assert.Regexp(t, `\nclients +4 ranks on 1 host, windows opened within .*, results of all\n`, o.stderr)
	assert.NotContains(t, o.stderr, "A PART")
	for _, op := range []string{"write", "read"} {
		group := "Checkpoint_model=8b_op=" + op
		ranks, all := b.resultsOf(group, 0)
		require.Len(t, ranks, n)
		require.NotNil(t, all)
		assert.Equal(t, result.StatusComplete, all.Status, all.Error)
		whole := append(all.Checkpoint.Writes, all.Checkpoint.Reads...)
		require.Len(t, whole, 2)
		for i, run := range whole {
			var bytes int64
			for rank, r := range ranks {
				c := r.Checkpoint
				assert.Equal(t, []int{2 * rank, 2}, []int{*c.First, *c.Count})
				bytes += append(c.Writes, c.Reads...)[i].Bytes
			}
			assert.Equal(t, []int64{bytes, bytes}, []int64{all.Checkpoint.Bytes, run.Bytes})
		}
		assert.Equal(t, op == "read", whole[0].VerifiedBytes > 0)
		assert.FileExists(t, filepath.Join(b.results, group, "trial_0/all_ranks",
			"checkpoint_summary.json"))
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
		pid := p.Process.Pid
		require.NoError(t, syscall.Kill(append([]int{pid}, started(pid)...)[rank], syscall.SIGKILL))
		o := p.end()
		gone(t, pid)
		if rank > 0 {
			assert.Equal(t, 1, o.code, o.stderr)
			assert.Regexp(t, `rank [12] on .*signal: killed`, o.stdout)
		}
	}
	b.results = results
	b.ok(append(b.checkpoints(), "-ranks=2")...)
	files, err := filepath.Glob(b.cache + "/ckpt_8b/*/*")
	require.NoError(t, err)
	assert.Equal(t, []string{foreign}, files)
}
