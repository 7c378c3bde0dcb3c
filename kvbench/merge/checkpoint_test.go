package merge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

// part is what one of four clients, two on each of two hosts, has of the checkpoints of eight
// accelerators.
func part(rank int, host string, took, device, cached []int64) *result.Result {
	r := client(rank, host)
	c := &result.Checkpoint{Model: "llama3-8b", Accelerators: 8, Bytes: 800, First: new(2 * rank),
		Count: new(2), Flush: "none", FlushNS: new(int64(0)), GapNS: new(int64(1e9 + rank)),
		Rules: []result.CheckpointRule{
			{Name: "gap", Found: "1.0 s", OK: new(true)},
			{Name: result.RuleCold, Found: "of one client", OK: new(true)}}}
	for i, d := range took {
		c.Reads = append(c.Reads, result.CheckpointRun{Index: i + 1, Start: "2026-01-02T03:04:05Z",
			DurationNS: d, MinNS: d / 2, Slowest: 2*rank + 1, Bytes: 200, VerifiedBytes: 10,
			DeviceBytes: new(device[i]), CachedBytes: new(cached[i])})
	}
	r.Checkpoint = c
	return r
}

func parts() []*result.Result {
	none := []int64{0, 0}
	return []*result.Result{
		part(0, "a", []int64{4e9, 2e9}, []int64{400, 400}, none),
		part(1, "a", []int64{3e9, 5e9}, []int64{390, 380}, none),
		part(2, "b", []int64{8e9, 1e9}, []int64{400, 20}, []int64{1, 190}),
		part(3, "b", []int64{1e9, 1e9}, []int64{300, 20}, []int64{1, 190}),
	}
}

// TestACheckpointOfSeveralClients: the numbers by hand. 800 bytes each; the first took 8 s, by
// accelerator 5 on rank 2, the second 5 s, by accelerator 3; of the devices of two hosts, that of
// the second was not asked in the second checkpoint, whose files lay in its memory.
func TestACheckpointOfSeveralClients(t *testing.T) {
	out := Ranks(parts(), nil)
	c := out.Checkpoint
	require.Len(t, c.Reads, 2)
	assert.Equal(t, result.CheckpointRun{Index: 1, Start: "2026-01-02T03:04:05Z", DurationNS: 8e9,
		MinNS: 5e8, Slowest: 5, Bytes: 800, VerifiedBytes: 40, DeviceBytes: new(int64(800)),
		CachedBytes: new(int64(2)), Cold: new(true)}, c.Reads[0])
	assert.Equal(t, result.CheckpointRun{Index: 2, Start: "2026-01-02T03:04:05Z", DurationNS: 5e9,
		MinNS: 5e8, Slowest: 3, Bytes: 800, VerifiedBytes: 40, DeviceBytes: new(int64(420)),
		CachedBytes: new(int64(380)), Cold: new(false)}, c.Reads[1])
	assert.EqualValues(t, 1e9+3, *c.GapNS)
	assert.EqualValues(t, 9e9+3, *c.RecoveryNS)
	assert.Equal(t, []result.CheckpointRule{{Name: "gap", Found: "1.0 s", OK: new(true)},
		{Name: result.RuleCold, Found: "1 of 2 came from memory", OK: new(false)}}, c.Rules)
	assert.Nil(t, c.Count)
	assert.InDelta(t, 130, result.Sum(c.Reads).Rate, 1e-9) // (800/8 + 800/5) / 2
}

// TestCheckpointTimesHaveOneClock: rank 0 begins at .12 s and rank 1 at .1 s, which as text come in
// the other order; rank 2's clock is two hours ahead, and by it 50 ms are the first.
func TestCheckpointTimesHaveOneClock(t *testing.T) {
	ranks := parts()[:3]
	for i, at := range []string{"2026-01-02T03:04:05.12Z", "2026-01-02T03:04:05.1Z",
		"2026-01-02T05:04:05.05Z"} {
		ranks[i].Checkpoint.Accelerators = 6
		ranks[i].Checkpoint.Reads[0].Start, ranks[i].StartTime = at, at
	}
	ranks[2].ClockOffsetNS = new(int64(2 * time.Hour))
	out := Ranks(ranks[:2], nil)
	assert.Equal(t, "2026-01-02T03:04:05.1Z", out.StartTime)
	out = Ranks(ranks, nil)
	assert.Equal(t, "2026-01-02T03:04:05.05Z", out.Checkpoint.Reads[0].Start)
	assert.Equal(t, "2026-01-02T03:04:05.05Z", out.StartTime)
	ranks[2].ClockOffsetNS = nil
	ranks[2].Checkpoint.Reads[0].Start = "2026-01-02T03:05:00Z"
	ranks[1].Checkpoint.GapNS = new(int64(-3600e9))
	out = Ranks(ranks, nil)
	assert.Equal(t, "2026-01-02T03:04:05.1Z", out.Checkpoint.Reads[0].Start)
	assert.EqualValues(t, -3600e9, *out.Checkpoint.GapNS, "clocks that differ are not hidden")
}

// TestClosedCheckpointsOfSeveralClients: where the closed division's rules were not kept, and no
// client alone could know it, the trial has failed.
func TestClosedCheckpointsOfSeveralClients(t *testing.T) {
	for division, want := range map[string]string{
		result.DivisionOpen:   result.StatusComplete,
		result.DivisionClosed: result.StatusFailed,
	} {
		all := parts()
		for _, r := range all {
			r.Division = division
		}
		out := Ranks(all, nil)
		assert.Equal(t, want, out.Status)
		if want == result.StatusFailed {
			assert.Equal(t, "the closed division: cold reads: must be , found 1 of 2 came from "+
				"memory", out.Error)
		}
	}
}

// A rule that one client did not keep was not kept; what only some have done is of none.
func TestPartsOfCheckpoints(t *testing.T) {
	all := parts()
	all[2].Checkpoint.Rules[0] = result.CheckpointRule{Name: "gap", Found: "31.0 s", OK: new(false)}
	all[1].Checkpoint.Reads = all[1].Checkpoint.Reads[:1]
	out := Ranks(all, nil)
	assert.Equal(t, result.CheckpointRule{Name: "gap", Found: "31.0 s on rank 2", OK: new(false)},
		out.Checkpoint.Rules[0])
	assert.Len(t, out.Checkpoint.Reads, 1)

	out = Ranks(all[:3], nil)
	assert.Empty(t, out.Checkpoint.Reads, "one client is missing")
	alone := part(0, "a", []int64{1}, []int64{1}, []int64{0})
	alone.Ranks, alone.Checkpoint.First, alone.Checkpoint.Count = 1, nil, nil
	out = Ranks([]*result.Result{alone}, nil)
	assert.Equal(t, alone.Checkpoint, out.Checkpoint)
}

// TestPipelinesSideBySide: sums of what was made, means of waits, walls of the longest.
func TestPipelinesSideBySide(t *testing.T) {
	parts := []*result.Checkpoint{
		{Stages: &result.Pipeline{Producers: 1, Writers: 4, Chunks: 3, GenerationNS: 20,
			GenerationWallNS: 20, IONS: 80, CloseNS: 7, ProducerWaitNS: 70, WriterWaitNS: 10,
			GenerationRate: new(2.0), TotalNS: 90}},
		{Stages: &result.Pipeline{Producers: 3, Writers: 4, Chunks: 5, GenerationNS: 60,
			GenerationWallNS: 30, IONS: 60, CloseNS: 9, ProducerWaitNS: 30, WriterWaitNS: 20,
			GenerationRate: new(3.0), TotalNS: 80}},
	}
	out := merged(parts)
	out.Writes = []result.CheckpointRun{{DurationNS: 100}}
	stages(out, parts)
	assert.Equal(t, &result.Pipeline{Producers: 4, Writers: 8, Chunks: 8, GenerationNS: 80,
		GenerationWallNS: 30, IONS: 80, CloseNS: 9, ProducerWaitNS: 40, WriterWaitNS: 15,
		GenerationRate: new(5.0), TotalNS: 100, Ratio: new(4.0), Overhead: new(0.2),
		Bottleneck: result.BottleneckIO}, out.Stages)
}
