//go:build !linux

package host

import "errors"

// CachedBytes, DropFromCache and DropCaches are for Linux alone.
func CachedBytes(string) (int64, error) { return 0, errors.ErrUnsupported }

// DropFromCache is for Linux alone.
func DropFromCache(string) error { return errors.ErrUnsupported }

// DropCaches is for Linux alone.
func DropCaches() error { return errors.ErrUnsupported }
