//go:build !race

package tracing

const raceFactor = 1
