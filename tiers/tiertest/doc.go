// Package tiertest is the contract of a tier as tests, and what tests of tiers share.
//
//	tiertest.go  Run: the contract, test by test
//	every.go     Every: each tier of this module; Dir, Transfer: what they need; Crowd: benchmarks
//	             of many goroutines; OneThread: tests of one
//	null.go      Null: a tier that takes no time and keeps nothing
//	stream.go    Stream: one whose objects come and go as streams, over another
//	engine.go    Engine: one whose requests a test holds back and lists
//
// # A new tier
//
// A line in without (or in Layouts, for one of files) makes it one of those that Every runs
// through: TestEveryTierKeepsTheContract then says what is missing, one promise of tiers.Tier after
// the other, before a cache or a transfer comes across it. A wrapper is tested around a tier of
// memory beside the others in TestWrappersKeepTheContract. What a tier does beyond the contract, as
// the places of a layout, is for its own package to test: scripts in testdata show it best.
//
// A device that does not answer is an Engine that holds requests back; a failure at any call is
// tiers/faults. Neither waits for time to pass: tests run in a synctest bubble or by their order.
package tiertest
