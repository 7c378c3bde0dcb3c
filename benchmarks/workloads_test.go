package benchmarks

import (
	"testing"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/plainio"
)

// The three MLPerf Storage v3.0 options.

func BenchmarkMaxStorageStress(b *testing.B)  { workload(b, "MaxStorageStress") }
func BenchmarkStorageThroughput(b *testing.B) { workload(b, "StorageThroughput") }
func BenchmarkLargeModel(b *testing.B)        { workload(b, "LargeModel") }

// Synthetic users.

func BenchmarkSynthetic(b *testing.B)   { workload(b, "Synthetic") }
func BenchmarkPrefillOnly(b *testing.B) { workload(b, "PrefillOnly") }
func BenchmarkDecodeOnly(b *testing.B)  { workload(b, "DecodeOnly") }
func BenchmarkMultiTurn(b *testing.B)   { workload(b, "MultiTurn") }

// Users whose number follows what the storage can do.

func BenchmarkAutoscaleQoS(b *testing.B)      { workload(b, "AutoscaleQoS") }
func BenchmarkAutoscaleCapacity(b *testing.B) { workload(b, "AutoscaleCapacity") }

// Documents.

func BenchmarkRAG(b *testing.B) { workload(b, "RAG") }

// Recorded requests.

func BenchmarkShareGPT(b *testing.B) { workload(b, "ShareGPT") }

func BenchmarkBurstGPT(b *testing.B)   { workload(b, "BurstGPT") }
func BenchmarkAzureTrace(b *testing.B) { workload(b, "AzureTrace") }

// BenchmarkIOTraceReplay carries out the operations of an I/O trace, ours or the
// Python benchmark's.
func BenchmarkIOTraceReplay(b *testing.B) {
	each(b, "IOTraceReplay", func(b *testing.B, v *params.Values, _ string) {
		plain(b, v, func(cfg *kvbench.Config, _ *plainio.Config) plainio.Routine {
			return replayRoutine(v, &cfg.Storage)
		})
	})
}

// Content-addressed blocks.

func BenchmarkBlockTrace(b *testing.B) { workload(b, "BlockTrace") }

// BenchmarkEngines replays a block trace as inference engines keep it, one line for each, in turns,
// and ranks them.
func BenchmarkEngines(b *testing.B) { engines(b) }
