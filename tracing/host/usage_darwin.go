package host

import (
	"errors"
	"fmt"
)

// ResetPeakRSS is not possible here: PeakRSS counts from the start of the process.
func ResetPeakRSS() error {
	return fmt.Errorf("reset the peak memory of this process: %w", errors.ErrUnsupported)
}

// CurrentRSS is unknown here: 0.
func CurrentRSS() int64 { return 0 }

// peakRSS: macOS counts it in bytes.
func peakRSS(maxrss int64) int64 { return maxrss }
