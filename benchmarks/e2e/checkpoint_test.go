package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

// smallCheckpoint are the flags of two accelerators, whose files have some pages.
var smallCheckpoint = []string{"-test.bench=Checkpoint$", "-checkpoint-accelerators=2",
	"-checkpoint-scale=1/8192", "-stream-chunk=64KiB"}

func (b *bench) checkpoints(more ...string) []string {
	return slices.Concat(b.places(), smallCheckpoint, more)
}

// TestCheckpoint: each direction has a line, a result and the reference's summary; with several
// trials each is read right after it was written. The same for one file, the stream; tests of objects
// have it as an object.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.ok(b.checkpoints("-test.bench=Checkpoint", "-test.count=2", "-stream-size-gb=0.05",
		"-stream-readers=3", "-stream-range=128KiB", "-verify=full")...)
	for _, op := range []string{"write", "read"} {
		assert.Equal(t, 2, strings.Count(o.stdout, "\nBenchmarkCheckpoint/model=8b/op="+op),
			o.stdout)
		assert.Regexp(t, `\n +Checkpoint/model=8b/(op=`+op+`)? +`+op+` +[0-9.]+ .iB/s +`+
			`[0-9.]+–[0-9.]+ +[0-9.]+ % +no \(1\) +\d/2 `, o.stderr)
		for _, trial := range []string{"trial_0", "trial_1"} {
			r := theResult(t, filepath.Join(b.results, "Checkpoint_model=8b_op="+op, trial))
			require.NotNil(t, r.Checkpoint)
			assert.Equal(t, result.StatusComplete, r.Status)
			assert.Equal(t, "Checkpoint/model=8b/op="+op, r.Name)
			require.Len(t, append(r.Checkpoint.Writes, r.Checkpoint.Reads...), 2)
			assert.FileExists(t, filepath.Join(b.results, "Checkpoint_model=8b_op="+op, trial,
				"rank_0/checkpoint_summary.json"))
		}
	}
	const size = 53687091 // 0.05 GiB, and no multiple of a chunk
	write, read := filepath.Join(b.results, "CheckpointStream_op=write/trial_0"),
		filepath.Join(b.results, "CheckpointStream_op=read/trial_0")
	assert.EqualValues(t, size, theResult(t, write).Checkpoint.Writes[0].Bytes)
	assert.EqualValues(t, size, theResult(t, read).Checkpoint.Reads[0].VerifiedBytes)
	text, err := os.ReadFile(filepath.Join(write, "rank_0/checkpoint_summary.json"))
	require.NoError(t, err)
	var s map[string]any
	require.NoError(t, json.Unmarshal(text, &s))
	assert.EqualValues(t, size, s["total_bytes"])
	assert.EqualValues(t, 820, s["chunks"], "of 64 KiB")
	assert.False(t, exists(filepath.Join(read, "rank_0/checkpoint_summary.json")))
	assert.False(t, exists(b.cache+"/ckpt_8b") || exists(b.cache+"/ckpt_stream"))
}

// TestCheckpointsSurviveSIGKILL kills runs at random moments: the next one removes what is left, and
// no file of the user changes, not even in the directory of a checkpoint.
func TestCheckpointsSurviveSIGKILL(t *testing.T) {
	t.Parallel()
	b, root, before := userBench(t)
	step := filepath.Join(b.cache, "ckpt_8b/global_epoch1_step1")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	marked := false
	for range 6 {
		p := b.start(b.checkpoints("-checkpoint-scale=1/1024", "-checkpoint-writes=4",
			"-checkpoint-reads=4")...)
		<-time.After(time.Duration(rng.IntN(400)) * time.Millisecond)
		_ = p.Process.Signal(syscall.SIGKILL)
		p.end()
		if exists(step) && !marked {
			// A file of the user's, with a name that another model's checkpoint would have.
			marked = os.WriteFile(step+"/layer_7-model_0_model_states.pt", []byte("mine"),
				0o644) == nil
			before = nil
		}
	}
	b.ok(b.checkpoints()...)
	if !marked {
		assert.Equal(t, before, tree(t, root))
		return
	}
	text, err := os.ReadFile(step + "/layer_7-model_0_model_states.pt")
	require.NoError(t, err)
	assert.Equal(t, "mine", string(text))
	files, err := filepath.Glob(b.cache + "/ckpt_8b/*/*")
	require.NoError(t, err)
	assert.Len(t, files, 1)
}
