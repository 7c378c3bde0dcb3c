package host

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// touch makes memory resident and gives it back, outside the Go heap so that it is gone at once.
func touch(t *testing.T, bytes int) {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	for i := 0; i < bytes; i += 4096 {
		mem[i] = 1
	}
	require.NoError(t, unix.Munmap(mem))
}
