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

// iocb and ioEvent are as in include/uapi/linux/aio_abi.h.
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

type ioEvent struct {
	data, request uint64
	result, more  int64
}

// Operations, with the numbers of that header.
const aioRead, aioWrite, aioFdsync = 0, 1, 3

const aioMost, aioSize = 64, 4096

// aioContext has requests and their data in memory that does not move.
type aioContext struct {
	t    *testing.T
	id   uintptr
	data []byte
	*aioArrays
}

type aioArrays struct {
	requests [aioMost]iocb
	array    [aioMost]uintptr
	events   [aioMost]ioEvent
}

func newAIO(t *testing.T) *aioContext {
	memory := func(n int) []byte {
		b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_ANON|unix.MAP_PRIVATE)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, unix.Munmap(b)) })
		return b
	}
	arrays := memory(int(unsafe.Sizeof(aioArrays{})))
	c := &aioContext{t: t, data: memory(aioMost * aioSize),
		aioArrays: (*aioArrays)(unsafe.Pointer(&arrays[0]))}
	_, _, e := unix.Syscall(unix.SYS_IO_SETUP, aioMost, uintptr(unsafe.Pointer(&c.id)), 0)
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

// set prepares the ith request, for a block of its own.
func (c *aioContext) set(i int, opcode uint16, fd int) {
	block := c.data[i*aioSize:]
	r := iocb{opcode: opcode, fd: uint32(fd), offset: int64(i) * aioSize}
	switch opcode {
	case aioRead, aioWrite:
		r.buffer, r.bytes = uint64(uintptr(unsafe.Pointer(&block[0]))), aioSize
	case aioFdsync:
		r.offset = 0
	}
	c.requests[i], c.array[i] = r, uintptr(unsafe.Pointer(&c.requests[i]))
}

// submit submits the first n requests, and returns how many the kernel accepted.
func (c *aioContext) submit(n int) int {
	taken, _, e := unix.Syscall(unix.SYS_IO_SUBMIT, c.id, uintptr(n),
		uintptr(unsafe.Pointer(&c.array)))
	require.Zero(c.t, e)
	return int(taken)
}

// reap waits for n completions.
func (c *aioContext) reap(n int) {
	for n > 0 {
		got, _, e := unix.Syscall6(unix.SYS_IO_GETEVENTS, c.id, 1, uintptr(n),
			uintptr(unsafe.Pointer(&c.events)), 0, 0)
		if e == unix.EINTR {
			continue
		}
		require.Zero(c.t, e)
		n -= int(got)
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

// TestRequestsOfLibaio expects each request of libaio once: requests of each kind, submitted one by
// one and together, one that the kernel did not accept, and one that failed. A request whose
// completion was read without a call counts as lost.
func TestRequestsOfLibaio(t *testing.T) {
	privtest.Root(t)
	l := privtest.LoopFS(t, 32, privtest.LoopOptions{NoJournal: true, PreferDirectIO: true})
	d, err := host.BackingDevice(l.Dir)
	require.NoError(t, err)
	for _, way := range waysOfCalls {
		t.Run(way, func(t *testing.T) {
			fd, err := unix.Open(filepath.Join(l.Dir, "file"), unix.O_RDWR|unix.O_CREAT|unix.O_DIRECT,
				0o600)
			require.NoError(t, err)
			defer unix.Close(fd)
			c := newAIO(t)
			const n = 20
			tr := tracedCalls(t, Options{Device: d, fileAttach: way, PID: os.Getpid()}, func() {
				for range n {
					for i := range aioMost {
						c.set(i, aioWrite, fd)
					}
					require.Equal(t, aioMost, c.submit(aioMost))
					c.reap(aioMost)
					for i := range aioMost {
						c.set(i, aioRead, fd)
					}
					require.Equal(t, aioMost, c.submit(aioMost))
					c.reap(aioMost)
					c.set(0, aioFdsync, fd)
					require.Equal(t, 1, c.submit(1))
					c.reap(1)
					// No file has this descriptor: the kernel accepts neither this request nor later ones.
					c.set(0, aioRead, fd)
					c.set(1, aioRead, 1<<20)
					c.set(2, aioRead, fd)
					require.Equal(t, 1, c.submit(3))
					c.reap(1)
					// A direct request at an unaligned offset fails.
					c.set(0, aioRead, fd)
					c.requests[0].offset = 1
					require.Equal(t, 1, c.submit(1))
					c.reap(1)
					require.Negative(t, c.events[0].result)
				}
			})
			missed := float64(tr.Capture.Losses.Missed)
			assert.InDelta(t, n*(aioMost+1), tr.VFSRead.Count, missed*aioMost)
			assert.InDelta(t, n*aioMost, tr.VFSWrite.Count, missed*aioMost)
			assert.InDelta(t, n*(aioMost+1)*aioSize/1024, tr.VFSReadSize.Sum, missed*aioMost*4)
			assert.InDelta(t, n*aioMost*aioSize/1024, tr.VFSWriteSize.Sum, missed*aioMost*4)
			assert.InDelta(t, n, tr.Fsync.Count, missed)
			assert.LessOrEqual(t, tr.Capture.Losses.Calls, int64(missed)*aioMost)

			tr = tracedCalls(t, Options{Device: d, fileAttach: way, PID: os.Getpid()}, func() {
				c.set(0, aioRead, fd)
				for range 3 {
					require.Equal(t, 1, c.submit(1))
					c.take()
				}
				require.Equal(t, 1, c.submit(1))
				c.reap(1)
			})
			assert.EqualValues(t, 1, tr.VFSRead.Count)
			assert.EqualValues(t, 3, tr.Capture.Losses.Calls, "as the address came again")
			assert.NotEmpty(t, tr.Capture.Warnings)
		})
	}
}
