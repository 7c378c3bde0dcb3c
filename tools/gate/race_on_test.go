//go:build race

package gate

// raceEnabled: simulations of one thread skip, because the detector has nothing to find in them and
// makes them ten times as long.
const raceEnabled = true
