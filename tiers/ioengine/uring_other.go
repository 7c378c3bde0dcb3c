//go:build !linux

package ioengine

import (
	"errors"
	"fmt"
	"time"
)

// onRing: there are no rings here.
type onRing struct{}

// NewURing is an error here.
func NewURing(func() time.Duration, int, bool) (Engine, string, error) {
	return nil, "", fmt.Errorf("io_uring is a feature of Linux: %w", errors.ErrUnsupported)
}
