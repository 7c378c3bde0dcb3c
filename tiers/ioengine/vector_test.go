package ioengine

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

// Requests of several pieces, of which the kernel moves a part that ends anywhere. The rest goes to
// its own place. A full disk, or the end of the file, is reported as such, although direct I/O cannot
// continue from an unaligned offset.
func TestPiecesAreWholeWhateverTheCallsDo(t *testing.T) {
	const pieces, size = 3, 4096
	for first := 0; first <= pieces*size; first += 1000 {
		for _, full := range []int{first / size * size, (first + size - 1) / size * size,
			pieces * size} {
			t.Run(fmt.Sprint(first, " of ", full), func(t *testing.T) {
				file := make([]byte, pieces*size)
				vec := make([][]byte, pieces)
				for i := range vec {
					vec[i] = make([]byte, size)
					for j := range vec[i] {
						vec[i][j] = byte(i*31 + j*7 + 1)
					}
				}
				interrupted := false
				writev := func(_ int, vec [][]byte, off int64) (int, error) {
					if interrupted = !interrupted; interrupted {
						return -1, unix.EINTR
					}
					n := 0
					for _, p := range vec {
						n += copy(file[int(off)+n:first], p)
					}
					return n, nil
				}
				write := func(_ int, p []byte, off int64) (int, error) {
					switch {
					case off%size != 0:
						return 0, unix.EINVAL
					case int(off) >= full:
						return 0, unix.ENOSPC
					}
					return copy(file[off:full], p), nil
				}
				op := &Op{Kind: Write, Vec: vec, N: pieces * size}
				n, err := vector(op, nil, writev, nil, write)
				if full < pieces*size {
					assert.Equal(t, unix.ENOSPC, err)
					assert.LessOrEqual(t, n, full)
				} else {
					assert.NoError(t, err)
					assert.Equal(t, pieces*size, n)
				}
				for i, b := range file[:n] {
					if b != vec[i/size][i%size] {
						t.Fatalf("byte %d of %d went somewhere else", i, n)
					}
				}

				into := make([][]byte, pieces)
				for i := range into {
					into[i] = make([]byte, size)
				}
				readv := func(_ int, vec [][]byte, off int64) (n int, _ error) {
					for _, p := range vec {
						n += copy(p, file[int(off)+n:min(first, full)])
					}
					return n, nil
				}
				read := func(_ int, p []byte, off int64) (int, error) {
					if off%size != 0 {
						return 0, unix.EINVAL
					}
					return copy(p, file[min(int(off), full):full]), nil
				}
				op = &Op{Kind: Read, Vec: into, N: pieces * size}
				got, err := vector(op, readv, nil, read, nil)
				if got < pieces*size {
					assert.Equal(t, io.ErrUnexpectedEOF, err)
				} else {
					assert.NoError(t, err)
				}
				for i := range got {
					if into[i/size][i%size] != file[i] {
						t.Fatalf("byte %d of %d came from somewhere else", i, got)
					}
				}
			})
		}
	}
}
