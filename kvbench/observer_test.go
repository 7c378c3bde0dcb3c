package kvbench

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/tiers"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/objecttier/store"
)

// Failures are counted by what a reader can look up: an errno, or why a store's request failed.
func TestFailuresHaveNames(t *testing.T) {
	refused := &store.Error{Op: store.Get, Cause: "refused"}
	missing := &store.Error{Op: store.Get, Cause: "404", Status: 404}
	for name, err := range map[string]error{
		"short file": &tiers.OpError{Op: "read", Err: io.ErrUnexpectedEOF},
		"EIO":        fmt.Errorf("read: %w", syscall.EIO),
		"ENOENT":     &tiers.OpError{Op: "open", Err: tiers.ErrNotFound},
		"refused":    &tiers.OpError{Op: "read", Err: refused},
		"lost":       &tiers.OpError{Op: "read", Err: fmt.Errorf("%w: %w", objecttier.ErrLost, missing)},
		"404":        missing,
		"":           errors.New("something"),
	} {
		assert.Equal(t, name, errnoName(err), "%v", err)
	}
}
