//go:build race

package requests

// raceEnabled: tests of one thread that only count skip, because the detector
// has nothing to find in them and makes them ten times as long.
const raceEnabled = true
