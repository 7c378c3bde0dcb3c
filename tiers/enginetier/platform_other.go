//go:build !linux

package enginetier

import "golang.org/x/sys/unix"

// openDirect: no flag asks for it here, and the engines have none for it either.
const openDirect = 0

func setDirect(int) error { return unix.EOPNOTSUPP }

func nameMax(int) int64 { return 255 }

func allocate(int, int64) error { return unix.EOPNOTSUPP }
