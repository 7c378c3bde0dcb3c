//go:build !linux

package enginetier

import "golang.org/x/sys/unix"

// openDirect is 0: this system has no such flag, and the engines use none here either.
const openDirect = 0

func setDirect(int) error { return unix.EOPNOTSUPP }

func nameMax(int) int64 { return 255 }

func allocate(int, int64) error { return unix.EOPNOTSUPP }
