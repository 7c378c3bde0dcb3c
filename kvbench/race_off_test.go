//go:build !race

package kvbench

const raceEnabled = false
