//go:build !linux

package ioengine

import (
	"errors"
	"fmt"
	"time"
)

// onRing is empty: this system has no io_uring.
type onRing struct{}

// NewURing returns an error: this system has no io_uring.
func NewURing(func() time.Duration, int, bool) (Engine, string, error) {
	return nil, "", fmt.Errorf("io_uring is a feature of Linux: %w", errors.ErrUnsupported)
}
