//go:build !linux

package host

import "errors"

// CachedBytes is available only on Linux.
func CachedBytes(string) (int64, error) { return 0, errors.ErrUnsupported }

// DropFromCache is available only on Linux.
func DropFromCache(string) error { return errors.ErrUnsupported }

// DropCaches is available only on Linux.
func DropCaches() error { return errors.ErrUnsupported }
