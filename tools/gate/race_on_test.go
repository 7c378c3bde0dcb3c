//go:build race

package gate

// raceEnabled: simulations in one thread skip, because the detector finds nothing in them and makes
// them ten times as long.
const raceEnabled = true
