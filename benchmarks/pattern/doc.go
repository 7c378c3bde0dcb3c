// Package pattern reads -bench and -skip as the testing package does, so that what they select is
// known before anything runs.
//
//	pattern.go   Pattern: Read, Matches, Skips; Arrange: the elements where a sweep has them;
//	             None: the answer to a pattern that selects nothing
//
// A Pattern is plain data and safe for concurrent use. It knows names only: which of them there are
// is told by package benchmarks.
package pattern
