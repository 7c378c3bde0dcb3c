//go:build !linux

package tiers

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// spareCalls is an optimisation of Linux; see rawio_linux.go.
type spareCalls struct{ left atomic.Int64 }

func (*spareCalls) pread(fd int, p []byte, off int64) (int, error)  { return unix.Pread(fd, p, off) }
func (*spareCalls) pwrite(fd int, p []byte, off int64) (int, error) { return unix.Pwrite(fd, p, off) }
