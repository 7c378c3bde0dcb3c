//go:build !linux

package group

import "time"

var began = time.Now()

func monotonic() int64 { return int64(time.Since(began)) }

// WhoseClock returns nothing: the monotonic clock of this process is its own.
func WhoseClock() (boot, namespace string) { return "", "" }
