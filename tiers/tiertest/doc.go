// Package tiertest has the tests of the contract of tiers.Tier, and helpers for tests of tiers.
//
//	tiertest.go  Run: the tests of the contract
//	every.go     Every: runs a test on each tier of this module; Dir, Files, Transfer: what tests
//	             need; Crowd: benchmarks with many goroutines; OneThread: tests without concurrency
//	null.go      Null: a tier that takes no time and stores no bytes
//	stream.go    Stream: a tiers.Streamer on top of another tier
//	engine.go    Engine: an I/O engine that holds requests back
//
// # A new tier
//
// Add a line to without, or for a file layout to Layouts. Every then includes the tier, and
// TestEveryTierKeepsTheContract shows what its implementation misses. A wrapper of tiers gets a line
// in TestWrappersKeepTheContract. The tier's own package tests what goes beyond the contract, such as
// the places of a layout, preferably with scripts in testdata.
//
// Engine simulates a device that hangs; package faults makes any call fail. Neither waits in real
// time: tests run in a synctest bubble, or in a fixed order.
package tiertest
