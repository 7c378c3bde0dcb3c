//go:build !linux || !(amd64 || arm64)

package collector

import (
	"runtime"

	"kvbench/tracing"
	"kvbench/tracing/host"
)

// attach has no programs for this platform.
func attach(Options, []host.Disk, *tracing.Capture) (programs, *UnavailableError) {
	return nil, &UnavailableError{
		Reason: "block-layer tracing is for Linux on amd64 and arm64, this " +
			"is " + runtime.GOOS + " on " + runtime.GOARCH,
		Need: "Linux on amd64 or arm64",
	}
}
