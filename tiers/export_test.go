package tiers

import (
	"errors"
	"runtime"
	"testing"
)

// RaceEnabled lets external tests know that allocations are not only ours.
const RaceEnabled = raceEnabled

// SkipWithoutHoles skips a test of several entries per file where the platform
// has no holes; elsewhere the refusal is a failure.
func SkipWithoutHoles(t testing.TB, err error) {
	t.Helper()
	if runtime.GOOS == "darwin" && errors.Is(err, ErrNotSupported) {
		t.Skip(err)
	}
}
