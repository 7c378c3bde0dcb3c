package benchmarks

import "testing"

// The three MLPerf Storage v3.0 options.

func BenchmarkMaxStorageStress(b *testing.B)  { workload(b, "MaxStorageStress") }
func BenchmarkStorageThroughput(b *testing.B) { workload(b, "StorageThroughput") }
func BenchmarkLargeModel(b *testing.B)        { workload(b, "LargeModel") }

// Synthetic users.

func BenchmarkSynthetic(b *testing.B)   { workload(b, "Synthetic") }
func BenchmarkPrefillOnly(b *testing.B) { workload(b, "PrefillOnly") }
func BenchmarkDecodeOnly(b *testing.B)  { workload(b, "DecodeOnly") }
func BenchmarkMultiTurn(b *testing.B)   { workload(b, "MultiTurn") }

// Documents.

func BenchmarkRAG(b *testing.B) { workload(b, "RAG") }

// Recorded requests.

func BenchmarkShareGPT(b *testing.B) { workload(b, "ShareGPT") }

func BenchmarkBurstGPT(b *testing.B)   { workload(b, "BurstGPT") }
func BenchmarkAzureTrace(b *testing.B) { workload(b, "AzureTrace") }

// Content-addressed blocks.

func BenchmarkBlockTrace(b *testing.B) { workload(b, "BlockTrace") }
