//go:build !linux

package privtest

import (
	"errors"
	"testing"
)

var errLinux = errors.New("loop devices, cgroups and niceness of threads are Linux features")

// Ahead skips the test here.
func Ahead(t testing.TB) {
	t.Helper()
	Need(t, errLinux)
}

// LoopFS skips the test here.
func LoopFS(t testing.TB, _ int, _ LoopOptions) *Loop {
	t.Helper()
	Need(t, errLinux)
	return nil
}

// Remount is never reached here.
func (l *Loop) Remount(testing.TB, bool) {}

// Server is never made here.
type Server struct{}

// Throttle is never made here.
type Throttle struct{}

// ThrottleLoop skips the test here.
func ThrottleLoop(t testing.TB, _ *Loop, _ Rates) *Throttle {
	t.Helper()
	Need(t, errLinux)
	return nil
}

// Add is never reached here.
func (th *Throttle) Add(testing.TB, int) {}

// AddSelf is never reached here.
func (th *Throttle) AddSelf() string { return "" }
