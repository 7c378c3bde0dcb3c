//go:build race

package tiertest

// Race: the tests run with the race detector.
const Race = true
