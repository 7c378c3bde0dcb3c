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

// Recorded requests.

func BenchmarkBurstGPT(b *testing.B)   { workload(b, "BurstGPT") }
func BenchmarkAzureTrace(b *testing.B) { workload(b, "AzureTrace") }
