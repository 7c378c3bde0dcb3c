//go:build measure

package requests

import (
	"fmt"
	"testing"
)

// TestMeasuredBreakEven takes two minutes.
func TestMeasuredBreakEven(t *testing.T) {
	for _, mib := range []int64{500, 1024} {
		t.Run(fmt.Sprintf("%dMiB/s", mib), func(t *testing.T) { breakEvenAt(t, mib) })
	}
}
