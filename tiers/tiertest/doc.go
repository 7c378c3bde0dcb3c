// Package tiertest has tests of the contracts of tiers.Tier and tiers.Files, and helpers for tests of
// tiers.
//
//	tiertest.go  Run: the tests of the contract; RunFiles: the same for files
//	files.go     the tests of the contract of tiers.Files
//	every.go     Every: runs a test on all files of this module; Dir, Files, Transfer: what tests
//	             need; Crowd: benchmarks with many goroutines; OneThread: tests without concurrency
//	null.go      Null: files that take no time and store no bytes
//	engine.go    Engine: an I/O engine that can hold requests back
//
// # A new tier
//
// For a new tier, add it to without; for a file layout, add it to Layouts. Every then includes it, and
// TestEveryTierKeepsTheContract shows what the implementation misses. Add a wrapper of tiers to
// TestWrappersKeepTheContract. The tier's own package tests what the contract does not cover, such as
// the places of a layout, preferably with scripts in testdata.
//
// Engine simulates a device that hangs. Package faults makes any call fail. Neither waits in real time:
// tests run in a synctest bubble, or in a fixed order.
package tiertest
