// Package tiertest is the contract of a tier as tests, and what tests of tiers share.
//
//	tiertest.go  Run: the contract, test by test
//	every.go     Every: each tier of this module; Dir, Transfer: what they need
//	null.go      Null: a tier that takes no time and keeps nothing
//	engine.go    Engine: one whose requests a test holds back and lists
package tiertest
