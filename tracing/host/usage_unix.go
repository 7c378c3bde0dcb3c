//go:build unix

package host

import (
	"time"

	"golang.org/x/sys/unix"
)

func processUsage() Usage {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil { // cannot fail with these arguments
		return Usage{PeakRSS: peakRSS(0)}
	}
	return Usage{
		User: time.Duration(ru.Utime.Nano()), Sys: time.Duration(ru.Stime.Nano()),
		PeakRSS:  peakRSS(int64(ru.Maxrss)),
		VolCtxSw: int64(ru.Nvcsw), InvolCtxSw: int64(ru.Nivcsw),
	}
}
