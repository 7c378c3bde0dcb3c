package host

import (
	"fmt"
	"os"
)

// ResetPeakRSS makes the peak start again at the present size, so that a benchmark does not inherit the peak of the one
// before it. It fails where the kernel forbids it (some sandboxes); PeakRSS then counts from the start of the process.
func ResetPeakRSS() error {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak memory of this process: %w", err)
	}
	return nil
}

// CurrentRSS is the resident memory of this process now, in bytes, 0 where unknown.
func CurrentRSS() int64 { return statusField("VmRSS:") }

// peakRSS prefers the high-water mark that ResetPeakRSS resets: getrusage's, in KiB, is never reset, and is inherited
// through exec from the process that started this one.
func peakRSS(maxrss int64) int64 {
	if peak := statusField("VmHWM:"); peak > 0 {
		return peak
	}
	return maxrss << 10
}

// statusField reads a memory size from /proc/self/status in bytes, 0 when it is not there.
func statusField(name string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	return kibField(string(text), name)
}
