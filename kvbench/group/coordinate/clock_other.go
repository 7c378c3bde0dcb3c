//go:build !linux

package coordinate

import "time"

var began = time.Now()

func monotonic() int64 { return int64(time.Since(began)) }

// WhoseClock says which boot and which time namespace this process's monotonic clock is of: here it
// is its own.
func WhoseClock() (boot, namespace string) { return "", "" }
