package buffer

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBuffers(t *testing.T) {
	for _, c := range []struct {
		workers, writers, depth, chunk int
		most                           int64
		want, got                      int
	}{
		{workers: 1, depth: 1, chunk: 1 << 20, want: 2, got: 2},
		{workers: 10, depth: 4, chunk: 1 << 20, want: 50, got: 50},
		{workers: 10, writers: 3, depth: 4, chunk: 1 << 20, want: 3*5 + 7*4, got: 3*5 + 7*4},
		{workers: 10, writers: 30, depth: 4, chunk: 1 << 20, want: 50, got: 50},
		{workers: 500, depth: 8, chunk: 2 << 20, want: 4500, got: 512}, // a GiB at most
		{workers: 500, depth: 8, chunk: 2 << 20, most: 8 << 30, want: 4500, got: 4096},
		{workers: 500, depth: 8, chunk: 2 << 20, most: 9 << 30, want: 4500, got: 4500},
		// but two operations can always run
		{workers: 500, depth: 200, chunk: 64 << 20, want: 500 * 201, got: 2 * 201},
	} {
		want, got := Use{Workers: c.workers, MaxWriters: c.writers, Depth: c.depth,
			Chunk: c.chunk, Most: c.most}.Buffers()
		assert.Equal(t, [2]int{c.want, c.got}, [2]int{want, got}, "%+v", c)
	}
}

// Streamed writes generate their content in the memory that is sent, and need no buffers.
func TestStreamsNeedBuffersForReadingAlone(t *testing.T) {
	want, got := Use{Workers: 320, Depth: 2, Chunk: 64 << 10, Streamed: true}.Buffers()
	assert.Equal(t, []int{640, 640}, []int{want, got})
}
