package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers/objecttier/s3double"
	"kvbench/tiers/objecttier/s3gateway"
	"kvbench/workloads/checkpoint"
)

// objectCheckpoints are checkpoints of four accelerators on a store, with objects of two parts and
// more, and some of one request.
func (b *bench) objectCheckpoints(urls []string, more ...string) []string {
	return append(append(b.objects(urls), "-test.bench=Checkpoint$", "-checkpoint-accelerators=4",
		"-checkpoint-scale=1/1024", "-stream-chunk=5MiB", "-verify=full"), more...)
}

// checkpointKeys are those of so many checkpoints in a bucket, with the marker.
func checkpointKeys(t *testing.T, steps int) (keys []string, bytes int64) {
	m, err := checkpoint.Find("8b")
	require.NoError(t, err)
	spec, err := checkpoint.New(m, 4, 1024)
	require.NoError(t, err)
	_, bytes = spec.Totals()
	keys = append(keys, "runs/ckpt_8b/.kvbench.json")
	for step := range steps {
		for a := range spec.Accelerators {
			for _, f := range spec.Files(a) {
				keys = append(keys, fmt.Sprintf("runs/ckpt_8b/%s/%s", checkpoint.Step(step+1),
					f.Name))
			}
		}
	}
	return keys, bytes
}

// TestCheckpointsOnObjects: on a store of ours and on another's, by one client and by two, of which
// each reads what the other has written.
func TestCheckpointsOnObjects(t *testing.T) {
	t.Parallel()
	d := double(t, s3double.Config{}, 2)
	stores := map[string][]string{"double": d.URLs(),
		"versitygw": s3gateway.Start(t, s3gateway.Config{Bucket: bucket}, 2).URLs()}
	_, bytes := checkpointKeys(t, 0)
	for name, urls := range stores {
		for _, ranks := range []string{"1", "2"} {
			b := newObjectBench(t)
			o := b.ok(b.objectCheckpoints(urls, "-ranks="+ranks, "-checkpoint-shift=2")...)
			assert.Contains(t, o.stdout+o.stderr, "from the store, whose own caches nobody here sees")
			for _, op := range []string{"write", "read"} {
				dir := filepath.Join(b.results, "Checkpoint_model=8b_op="+op, "trial_0")
				if ranks == "2" {
					dir = filepath.Join(dir, "all_ranks")
				}
				r := theResult(t, dir)
				assert.Equal(t, result.StatusComplete, r.Status, r.Error)
				runs := append(r.Checkpoint.Writes, r.Checkpoint.Reads...)
				require.Len(t, runs, 2)
				for _, run := range runs {
					assert.Equal(t, bytes, run.Bytes, "%s, %s ranks, %s", name, ranks, op)
					if op == "read" {
						assert.Equal(t, bytes, run.VerifiedBytes)
						assert.Nil(t, run.Cold, "nobody here knows where a store has it from")
					}
				}
			}
			if ranks == "1" {
				b.ok(append(b.objects(urls), "-test.bench=CheckpointStream", "-stream-size-gb=0.05",
					"-stream-chunk=5MiB", "-stream-range=20MiB", "-verify=full")...)
			}
			if name == "double" {
				assert.Empty(t, d.Keys(bucket, ""))
				assert.Empty(t, d.Uploads(bucket))
			}
		}
	}
}

// TestCheckpointsOnObjectsInTwoRuns: what one run writes others read, as often as they like; what
// does not belong to the checkpoints stays, to the byte and the time.
func TestCheckpointsOnObjectsInTwoRuns(t *testing.T) {
	t.Parallel()
	d := double(t, s3double.Config{}, 1)
	b := newObjectBench(t)
	none := b.run(b.objectCheckpoints(d.URLs(), "-checkpoint-writes=0")...)
	assert.Equal(t, exitFailed, none.code)
	assert.Contains(t, none.stdout, "there is no checkpoint to read")
	assert.Empty(t, d.Keys(bucket, ""))
	b.ok(b.objectCheckpoints(d.URLs(), "-checkpoint-reads=0", "-ranks=2")...)
	want, _ := checkpointKeys(t, 2)
	assert.ElementsMatch(t, want, d.Keys(bucket, ""))
	foreign := "runs/ckpt_8b/global_epoch1_step1/notes.txt"
	require.NoError(t, d.SetObject(bucket, foreign, "mine", time.Now()))
	for _, ranks := range []string{"-ranks=1", "-ranks=2"} {
		b.ok(b.objectCheckpoints(d.URLs(), "-checkpoint-writes=0", ranks)...)
	}
	other := b.run(b.objectCheckpoints(d.URLs(), "-checkpoint-writes=0",
		"-checkpoint-scale=1/2048")...)
	assert.Equal(t, exitFailed, other.code)
	assert.Contains(t, other.stdout, "not of 8b on 4 accelerators at a scale of 1/2048")
	assert.ElementsMatch(t, append(want, foreign), d.Keys(bucket, ""))
	b.ok(b.objectCheckpoints(d.URLs())...)
	// The marker stays beside what is not ours: without it the next run would be refused there.
	assert.ElementsMatch(t, []string{want[0], foreign}, d.Keys(bucket, ""))
}

// TestCheckpointsSurviveTheirStore: a part that fails once is sent again from the same buffer; one
// that always fails ends the trial, with a result and nothing left behind.
func TestCheckpointsSurviveTheirStore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule s3double.Rule
		ok   bool
	}{
		{s3double.Rule{Op: s3double.PutPart, Nth: 2, Fault: s3double.Fault{Kind: s3double.Status,
			Status: 500}}, true},
		{s3double.Rule{Op: s3double.PutPart, Share: 0.3, Attempt: 1,
			Fault: s3double.Fault{Kind: s3double.Cut, At: 100_000}}, true},
		{s3double.Rule{Op: s3double.Get, Key: "rank_2_mp_rank_0_optim", Nth: 2,
			Fault: s3double.Fault{Kind: s3double.Reset, At: 100_000}}, true},
		{s3double.Rule{Op: s3double.PutPart, Key: "rank_2_mp", Fault: s3double.Fault{
			Kind: s3double.Status, Status: 500}}, false},
		{s3double.Rule{Op: s3double.PutPart, Key: "rank_3_mp", Fault: s3double.Fault{
			Kind: s3double.Status, Status: 507}}, false},
		{s3double.Rule{Op: s3double.Get, Key: "rank_1_mp", Fault: s3double.Fault{
			Kind: s3double.Flip, At: 777}}, false},
	} {
		d := double(t, s3double.Config{Seed: 7, Rules: []s3double.Rule{c.rule}}, 1)
		b := newObjectBench(t)
		o := b.run(b.objectCheckpoints(d.URLs(), "-s3-retries=2")...)
		played := slices.ContainsFunc(d.Log(), func(e s3double.Entry) bool { return e.Fault != "" })
		assert.True(t, played, "%+v", c.rule)
		assert.Equal(t, c.ok, o.code == 0, "%+v\n%s\n%s", c.rule, o.stdout, o.stderr)
		assert.NotEmpty(t, resultFiles(t, b.results))
		assert.Empty(t, d.Keys(bucket, ""), "%+v", c.rule)
		assert.Empty(t, d.Uploads(bucket), "%+v", c.rule)
	}
}

// TestKilledCheckpointsOnObjects: killed within a part, by one client or one of two, the next start
// takes back objects and uploads by their exact names.
func TestKilledCheckpointsOnObjects(t *testing.T) {
	t.Parallel()
	for _, ranks := range []int{1, 2} {
		d := double(t, s3double.Config{Rules: []s3double.Rule{{Op: s3double.PutPart, Nth: 5,
			Fault: s3double.Fault{Kind: s3double.Hang, At: 1000}}}}, 1)
		b := newObjectBench(t)
		p := b.start(b.objectCheckpoints(d.URLs(), fmt.Sprint("-ranks=", ranks))...)
		eventually(t, "the request that hangs", func() bool {
			return slices.ContainsFunc(d.Log(), func(e s3double.Entry) bool {
				return e.Fault == s3double.Hang
			})
		})
		require.NoError(t, p.Process.Signal(syscall.SIGKILL))
		p.end()
		foreign := "runs/ckpt_8b/global_epoch1_step1/mine"
		require.NoError(t, d.SetObject(bucket, foreign, "mine", time.Now()))
		require.NoError(t, d.SetRules())
		d.ClearLog()
		b.ok(b.objectCheckpoints(d.URLs())...)
		marker, _ := checkpointKeys(t, 0)
		assert.ElementsMatch(t, append(marker, foreign), d.Keys(bucket, ""))
		assert.Empty(t, d.Uploads(bucket))
		for _, e := range d.Log() {
			for _, key := range append(e.Keys, e.Key) {
				assert.True(t, key == "" || strings.HasPrefix(key, "runs/ckpt_8b/"), "%s %q", e.Op,
					key)
			}
		}
	}
}

// TestObjectCheckpointParameters: all that is wrong is said at once, and no store is asked.
func TestObjectCheckpointParameters(t *testing.T) {
	t.Parallel()
	b := newObjectBench(t)
	o := b.run(b.objectCheckpoints([]string{"http://127.0.0.1:1"}, "-io=direct", "-fadvise=none",
		"-io-timeout=5s", "-checkpoint-flush=fadvise", "-stream-chunk=1MiB",
		"-s3-part-size=64MiB", "-storage-capacity-gb=4")...)
	assert.Equal(t, 2, o.code)
	for _, want := range []string{"-io: must be absent", "-fadvise: must be absent",
		"-io-timeout: must be absent", "-checkpoint-flush: must be none",
		"-stream-chunk: must be at least 5 MiB", "-s3-part-size: must be absent",
		"-storage-capacity-gb: must be absent"} {
		assert.Contains(t, o.stderr, want)
	}
}
