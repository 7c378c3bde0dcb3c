// Package comparable knows which results may be set against each other: those that measured the same thing in the same
// way. It reads the settings that decide this from result files, from the configuration lines of benchmark text and from
// benchmarks' names, and fills in the division's defaults; whoever compares, gates, sums up or submits asks here.
package comparable
