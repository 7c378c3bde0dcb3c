package benchmarks

import (
	"testing"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/plainio"
)

// suite is the benchmarks that do not replay requests, or have sub-benchmarks.
var suite = Suite{
	"IOTraceReplay":    replayParts,
	"Checkpoint":       checkpointParts,
	"CheckpointStream": checkpointParts,
	"Tier":             tierParts,
	"DataGen":          dataGenParts,
	"StorageCeiling":   ceilingParts,
	"BlockIO":          blockParts,
	"Knee":             kneeParts,
}

// The three MLPerf Storage v3.0 options.

func BenchmarkMaxStorageStress(b *testing.B)  { run(b) }
func BenchmarkStorageThroughput(b *testing.B) { run(b) }
func BenchmarkLargeModel(b *testing.B)        { run(b) }

// Synthetic users.

func BenchmarkSynthetic(b *testing.B)   { run(b) }
func BenchmarkPrefillOnly(b *testing.B) { run(b) }
func BenchmarkDecodeOnly(b *testing.B)  { run(b) }
func BenchmarkMultiTurn(b *testing.B)   { run(b) }

// Users whose number follows what the storage can do.

func BenchmarkAutoscaleQoS(b *testing.B)      { run(b) }
func BenchmarkAutoscaleCapacity(b *testing.B) { run(b) }

// Documents.

func BenchmarkRAG(b *testing.B) { run(b) }

// Recorded requests.

func BenchmarkShareGPT(b *testing.B)   { run(b) }
func BenchmarkBurstGPT(b *testing.B)   { run(b) }
func BenchmarkAzureTrace(b *testing.B) { run(b) }

// BenchmarkIOTraceReplay executes the operations of an I/O trace, ours or the Python benchmark's.
func BenchmarkIOTraceReplay(b *testing.B) { run(b) }

func replayParts(v *params.Values) []part {
	return []part{{load: plain(func(cfg *kvbench.Config, _ *plainio.Config) plainio.Routine {
		return replayRoutine(v, &cfg.Storage)
	})}}
}

// Content-addressed blocks.

func BenchmarkBlockTrace(b *testing.B) { run(b) }

// BenchmarkEngines replays a block trace as inference engines keep it, one line for each, in turns,
// and ranks them.
func BenchmarkEngines(b *testing.B) { run(b) }
