//go:build linux && (amd64 || arm64)

package collector

import (
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers/privtest"
	"kvbench/tracing/host"
)

// iocb is as in include/uapi/linux/aio_abi.h.
type iocb struct {
	data       uint64
	key, flags uint32
	opcode     uint16
	priority   int16
	fd         uint32
	buffer     uint64
	bytes      uint64
	offset     int64
	_          [2]uint64
}

// Operations, with the numbers of that header.
const aioRead, aioFdsync = 0, 3

const aioSize = 4096

// aioContext has requests and their data in memory that does not move.
type aioContext struct {
	t  *testing.T
	id uintptr
	*aioMemory
}

type aioMemory struct {
	data     [aioSize]byte // first, because direct I/O needs an aligned buffer
	requests [3]iocb
	array    [3]uintptr
	events   [3]struct {
		data, request uint64
		result, more  int64
	}
}

func newAIO(t *testing.T) *aioContext {
	memory, err := unix.Mmap(-1, 0, int(unsafe.Sizeof(aioMemory{})),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, unix.Munmap(memory)) })
	c := &aioContext{t: t, aioMemory: (*aioMemory)(unsafe.Pointer(&memory[0]))}
	_, _, e := unix.Syscall(unix.SYS_IO_SETUP, uintptr(len(c.requests)),
		uintptr(unsafe.Pointer(&c.id)), 0)
	if e == unix.ENOSYS {
		t.Skip("this kernel has no asynchronous I/O (CONFIG_AIO)")
	}
	require.Zero(t, e)
	t.Cleanup(func() {
		_, _, e := unix.Syscall(unix.SYS_IO_DESTROY, c.id, 0, 0)
		assert.Zero(t, e)
	})
	return c
}

// submit submits requests, and expects the kernel to accept the first ones.
func (c *aioContext) submit(accepted int, requests ...iocb) {
	for i, r := range requests {
		if r.opcode == aioRead {
			r.buffer, r.bytes = uint64(uintptr(unsafe.Pointer(&c.data))), aioSize
		}
		c.requests[i], c.array[i] = r, uintptr(unsafe.Pointer(&c.requests[i]))
	}
	taken, _, e := unix.Syscall(unix.SYS_IO_SUBMIT, c.id, uintptr(len(requests)),
		uintptr(unsafe.Pointer(&c.array)))
	require.Zero(c.t, e)
	require.Equal(c.t, accepted, int(taken))
}

// reap waits for a completion.
func (c *aioContext) reap() (result int64) {
	for {
		_, _, e := unix.Syscall6(unix.SYS_IO_GETEVENTS, c.id, 1, 1,
			uintptr(unsafe.Pointer(&c.events)), 0, 0)
		if e != unix.EINTR {
			require.Zero(c.t, e)
			return c.events[0].result
		}
	}
}

// take reads a completion from the shared memory, as some programs do: struct aio_ring of fs/aio.c.
func (c *aioContext) take() {
	ring := *(**struct{ id, nr, head, tail uint32 })(unsafe.Pointer(&c.id))
	for atomic.LoadUint32(&ring.tail) == atomic.LoadUint32(&ring.head) {
		runtime.Gosched()
	}
	atomic.StoreUint32(&ring.head, (ring.head+1)%ring.nr)
}

// TestRequestsOfLibaio makes the requests of libaio that fio in TestCalls does not: a flush, one that the
// kernel does not accept, one that fails, and one whose completion is read without a call. The latter
// counts as lost.
func TestRequestsOfLibaio(t *testing.T) {
	privtest.Root(t)
	l := privtest.LoopFS(t, 32, privtest.LoopOptions{NoJournal: true, PreferDirectIO: true})
	d, err := host.BackingDevice(l.Dir)
	require.NoError(t, err)
	path := filepath.Join(l.Dir, "file")
	require.NoError(t, os.WriteFile(path, make([]byte, aioSize), 0o600))
	for _, way := range waysOfCalls {
		t.Run(way, func(t *testing.T) {
			file, err := unix.Open(path, unix.O_RDWR|unix.O_DIRECT, 0)
			require.NoError(t, err)
			defer unix.Close(file)
			c, fd := newAIO(t), uint32(file)
			const n = 20
			tr := tracedCalls(t, Options{Device: d, fileAttach: way, PID: os.Getpid()}, func() {
				for range n {
					c.submit(1, iocb{opcode: aioFdsync, fd: fd})
					c.reap()
					// No file has this descriptor: the kernel accepts neither this request nor later ones.
					c.submit(1, iocb{fd: fd}, iocb{fd: 1 << 20}, iocb{fd: fd})
					require.EqualValues(t, aioSize, c.reap())
					c.submit(1, iocb{fd: fd, offset: 1}) // unaligned
					require.Negative(t, c.reap())
				}
				for range 3 {
					c.submit(1, iocb{fd: fd})
					c.take()
				}
				c.submit(1, iocb{fd: fd})
				c.reap()
			})
			missed := tr.Capture.Losses.Missed
			assert.InDelta(t, n+1, tr.VFSRead.Count, float64(missed))
			assert.InDelta(t, (n+1)*aioSize/1024, tr.VFSReadSize.Sum, float64(missed*aioSize/1024))
			assert.InDelta(t, n, tr.Fsync.Count, float64(missed))
			assert.InDelta(t, 3, tr.Capture.Losses.Calls, float64(missed), "as the address came again")
			assert.NotEmpty(t, tr.Capture.Warnings)
		})
	}
}
