package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
)

func TestCheckpointLines(t *testing.T) {
	run := func(i int, ns, bytes int64) result.CheckpointRun {
		return result.CheckpointRun{Index: i, DurationNS: ns, MinNS: ns / 2, Slowest: 3,
			Bytes: bytes, CachedBytes: new(int64(0)), DeviceBytes: new(bytes), Cold: new(true)}
	}
	const gib = 1 << 30
	c := &result.Checkpoint{Model: "llama3-8b", Scale: 64, Accelerators: 8, Zero: 3, Tensor: 1,
		Pipeline: 1, Data: 8, Files: 16, Bytes: 2 * gib,
		Writes:     []result.CheckpointRun{run(1, 1e9, 2*gib), run(2, 2e9, 2*gib)},
		FlushMaxNS: new(int64(41e6)),
		Stages: &result.Pipeline{TotalNS: 3e9, ProducerWaitNS: 2.4e9, WriterWaitNS: 3e8,
			GenerationRate: new(10.0 * gib), Ratio: new(5.0), Overhead: new(0.014),
			Bottleneck: result.BottleneckIO},
		Rules: []result.CheckpointRule{{Name: "scale", Required: "1", Found: "1/64",
			OK: new(false)}, {Name: "flush", Found: "fsync per file", OK: new(true)}},
		Notes: []string{"a note"}}
	assert.Equal(t, [][2]string{
		{"checkpoint", "llama3-8b, 8 accelerators (ZeRO 3, TP 1 × PP 1 × DP 8), 16 files, 2 GiB " +
			"each time (scale 1/64: not for comparison)"},
		{"write", "2 checkpoints, 1.500 ± 0.500 s, 1.50 GiB/s (total ÷ slowest accelerator), " +
			"the slowest 1 GiB/s, by accelerator 3; flush of a file at most 41 ms"},
		{"pipeline", "generation alone 10 GiB/s, 5 × the rate of writes and flushes alone; overhead 1.40 %; writing " +
			"was the limit, not generation (producers waited 80 %, writers 10 %)"},
		{"rules", "flush fsync per file; differs from closed: scale (1/64, required: 1)"},
		{"", "a note"},
	}, checkpointLines(c, nil))
	assert.Equal(t, "a note", joined(checkpointLines(c, nil))[4])

	c.Reads, c.Writes, c.Stages, c.Notes = c.Writes, nil, nil, nil
	c.Flush, c.FlushNS, c.GapNS, c.RecoveryNS = "drop", new(int64(5e8)), new(int64(2e8)),
		new(int64(17e8))
	lines := checkpointLines(c, nil)
	assert.Equal(t, [2]string{"read", "2 checkpoints, 1.500 ± 0.500 s, 1.50 GiB/s (total ÷ " +
		"slowest accelerator), the slowest 1 GiB/s, by accelerator 3; cold: 0 B in the page cache " +
		"before, the device read 1.000 of the bytes"}, lines[1])
	assert.Equal(t, [2]string{"", "recovery 1.7 s: 500 ms for emptying the page cache (drop) and " +
		"0.2 s after the last write, then the first read"}, lines[2])

	c.GapNS = new(int64(-3600e9))
	assert.Equal(t, [2]string{"", "recovery unknown: by the wall clocks the first read began " +
		"3600.0 s before the last write ended, so the clocks differ"}, checkpointLines(c, nil)[2])
	c.GapNS = new(int64(2e8))

	c.Reads[1].Cold = nil
	assert.Contains(t, checkpointLines(c, nil)[1][1], "not provably cold")
	c.Reads[0].Cold = new(false)
	lines = checkpointLines(c, nil)
	assert.Contains(t, lines[1][1], "1 checkpoint, 2.000 ± 0.000 s, 1 GiB/s")
	assert.Equal(t, "WARM, and no part of these numbers: 1 checkpoint, 1.000 ± 0.000 s, 2 GiB/s "+
		"(total ÷ slowest accelerator), the slowest 2 GiB/s, by accelerator 3", lines[2][1])
	c.Reads[1].Cold = new(false)
	lines = checkpointLines(c, nil)
	assert.Contains(t, lines[1][1], "WARM: ")
	assert.Contains(t, lines[1][1], "2 checkpoints")
	assert.Contains(t, lines[2][1], "recovery")
	of := checkpointLines(c, &result.Network{ReadRatio: new(1.0004)})[1][1]
	assert.Contains(t, of, "; from the store, whose own caches are unknown: 1.000 bytes received")
	assert.NotContains(t, of, "page cache")
	assert.Nil(t, checkpointLines(nil, nil))
}
