//go:build !linux

package host

import "testing"

// touch is never reached here: peaks cannot be reset.
func touch(*testing.T, int) {}
