package host

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// While a filesystem hangs its last known state is returned, and it is not queried twice. Its late result
// counts.
func TestAFilesystemThatHangsIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var a Asked
		at := func(call func(func() error) error) (bool, time.Duration) {
			begun := time.Now()
			_, known := a.Filesystem(dir, time.Second, call)
			return known, time.Since(begun)
		}
		known, took := at(func(ask func() error) error { return ask() })
		assert.True(t, known)
		assert.Zero(t, took)
		result, calls := make(chan error), 0
		hang := func(func() error) error { calls++; return <-result }
		known, took = at(hang)
		assert.True(t, known, "from before")
		assert.Equal(t, time.Second, took)
		known, took = at(hang)
		assert.True(t, known)
		assert.Zero(t, took)
		synctest.Wait()
		assert.Equal(t, 1, calls)
		result <- errors.New("it is gone")
		synctest.Wait()
		known, _ = at(func(func() error) error { return errors.New("it is gone") })
		assert.False(t, known)
	})
}
