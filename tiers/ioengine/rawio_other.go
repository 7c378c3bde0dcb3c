//go:build !linux

package ioengine

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// SpareCalls is an optimisation of Linux; see rawio_linux.go.
type SpareCalls struct{ Left atomic.Int64 }

func (*SpareCalls) pread(fd int, p []byte, off int64) (int, error)  { return unix.Pread(fd, p, off) }
func (*SpareCalls) pwrite(fd int, p []byte, off int64) (int, error) { return unix.Pwrite(fd, p, off) }
