//go:build race

package tracing

// raceFactor is how much slower the race detector makes parsing here.
const raceFactor = 10
