package ioengine

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/ioengine/ring"
)

// realRings opens an engine, or skips the test if the system does not allow io_uring.
func realRings(t *testing.T, rings int) Engine {
	t.Helper()
	var ticks atomic.Int64
	e, about, err := NewURing(func() time.Duration { return time.Duration(ticks.Add(1)) }, rings,
		false)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	assert.Regexp(t, `^io_uring, \d rings of 256, [A-Z_, ]+$`, about)
	return e
}

func TestRingsReadWhatTheyWrote(t *testing.T) {
	e := realRings(t, 2)
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	defer f.Close()
	readsWhatItWrote(t, e, int(f.Fd()))
	require.NoError(t, e.Close(t.Context()))
}

// Requests of a lane share a ring. Others take the rings in turn.
func TestLanesHaveRings(t *testing.T) {
	e := realRings(t, 2)
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	defer f.Close()
	rings := e.(*uring).rings
	for lane, ring := range map[int]*looper{1: rings[0], 2: rings[1], 3: rings[0]} {
		for range 3 {
			op := submitAndWait(e, &Op{Kind: Sync, FD: int(f.Fd()), Lane: lane})
			assert.Same(t, ring, op.kernel.ring, lane)
		}
	}
	first := submitAndWait(e, &Op{Kind: Sync, FD: int(f.Fd())})
	second := submitAndWait(e, &Op{Kind: Sync, FD: int(f.Fd())})
	assert.NotSame(t, first.kernel.ring, second.kernel.ring)
	require.NoError(t, e.Close(t.Context()))
}

// Requests in registered memory, in a part of it, across two buffers of it, and in other memory.
func TestRingsUseRegisteredMemory(t *testing.T) {
	e := realRings(t, 2)
	arena, err := unix.Mmap(-1, 0, 4<<20, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	slot, err := e.Register(arena)
	if errors.Is(err, unix.ENOMEM) {
		t.Skip("RLIMIT_MEMLOCK is too small: ", err)
	}
	require.NoError(t, err)
	require.Positive(t, slot)
	again, err := e.Register(make([]byte, 8192))
	require.NoError(t, err)
	require.NotEqual(t, slot, again)
	e.Unregister(again)
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	defer f.Close()
	fd := int(f.Fd())
	fill := func(b []byte, seed uint64) {
		for i := 0; i+8 <= len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], seed+uint64(i))
		}
	}
	out, in := arena[4096:1<<20], arena[2<<20:3<<20-4096]
	fill(out, 7)
	op := submitAndWait(e, &Op{Kind: Write, FD: fd, N: len(out), Off: 12288,
		Buf: tiers.Buffer{B: out, Slot: slot}})
	require.NoError(t, op.Err)
	for _, b := range []tiers.Buffer{{B: in, Slot: slot}, {B: make([]byte, len(in))},
		{B: make([]byte, len(in)), Slot: slot}, {B: make([]byte, len(in)), Slot: again}} {
		require.NoError(t, submitAndWait(e, &Op{FD: fd, N: len(b.B), Off: 12288, Buf: b}).Err)
		assert.Equal(t, out, b.B)
	}
	e.Unregister(slot)
	clear(in)
	require.NoError(t, submitAndWait(e, &Op{FD: fd, N: len(in), Off: 12288,
		Buf: tiers.Buffer{B: in, Slot: slot}}).Err)
	assert.Equal(t, out, in)
	require.NoError(t, e.Close(t.Context()))
	require.NoError(t, unix.Munmap(arena))
}

// refused is a ring whose Enter fails.
type refused struct{ queue }

func (refused) Enter(int) error { return unix.EACCES }
func (refused) Close() error    { return nil }

// Where io_uring is refused, every trial tries again: none of them may leave a descriptor open.
func TestARefusedRingLeavesNothingOpen(t *testing.T) {
	count := func() int {
		open, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(open)
	}
	before := count()
	for range 10 {
		_, err := newURing(func() time.Duration { return 0 }, 2,
			func() (queue, string, error) { return nil, "", unix.EPERM })
		require.ErrorIs(t, err, unix.EPERM)
		// A filter may refuse io_uring_enter alone.
		_, err = newURing(func() time.Duration { return 0 }, 2,
			func() (queue, string, error) { return refused{}, "", nil })
		require.ErrorIs(t, err, unix.EACCES)
	}
	assert.LessOrEqual(t, count(), before)
}

// newPipe returns the descriptor of an empty pipe, and its other end.
func newPipe(t *testing.T) (fd int, end *os.File) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	return int(read.Fd()), write
}

// An empty pipe is a device that hangs. It keeps its requests, which are more than a ring has
// entries. Other requests complete while there are free entries, and Close stops waiting.
func TestRingsOutliveADeviceThatDoesNotAnswer(t *testing.T) {
	e := realRings(t, 2)
	pipe, end := newPipe(t)
	var back atomic.Int64
	const stuck = 100
	var ended sync.WaitGroup
	ended.Add(stuck)
	bufs := make([]byte, stuck)
	for i := range stuck {
		e.Submit(&Op{FD: pipe, N: 1, Buf: tiers.Buffer{B: bufs[i : i+1]}, Done: func(*Op) {
			back.Add(1)
			ended.Done()
		}})
	}
	f, err := os.Open(os.Args[0])
	require.NoError(t, err)
	defer f.Close()
	b := make([]byte, 512)
	for i := range 1000 {
		op := submitAndWait(e, &Op{FD: int(f.Fd()), N: len(b), Off: int64(i),
			Buf: tiers.Buffer{B: b}})
		require.NoError(t, op.Err)
	}
	all := e.Stuck(nil, 0)
	assert.Len(t, all, stuck)
	assert.Contains(t, all[0].Path, "pipe:")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	err = e.Close(ctx)
	require.Error(t, err)
	// The last Done of the other requests has been called, but may not have returned.
	assert.Regexp(t, "^close the I/O engine: the device still has 10[01] requests: enough$",
		err.Error())
	assert.Zero(t, back.Load())
	_, err = end.Write(make([]byte, stuck/2))
	require.NoError(t, err)
	require.NoError(t, end.Close()) // the other reads complete with the end of the file
	ended.Wait()
	require.NoError(t, e.Close(t.Context()))
}

// Requests beyond the entries of a ring wait in the process.
func TestARingHasMoreRequestsThanPlaces(t *testing.T) {
	e := realRings(t, 1)
	pipe, end := newPipe(t)
	const n = 4*ringEntries - 24
	var ended sync.WaitGroup
	ended.Add(n)
	bufs := make([]byte, n)
	for i := range n {
		e.Submit(&Op{FD: pipe, N: 1, Buf: tiers.Buffer{B: bufs[i : i+1]},
			Done: func(op *Op) { assert.NoError(t, op.Err); ended.Done() }})
	}
	given := make([]byte, n)
	for i := range given {
		given[i] = 1
	}
	_, err := end.Write(given)
	require.NoError(t, err)
	ended.Wait()
	assert.Equal(t, given, bufs)
	require.NoError(t, e.Close(t.Context()))
}

// A request that completes long after the trial has ended releases its memory in Done, on the ring's
// own thread. Unregister must therefore not wait for that thread.
func TestMemoryComesBackWithALateAnswer(t *testing.T) {
	e := realRings(t, 2)
	pipe, end := newPipe(t)
	arena := make([]byte, 4096)
	for range 3 * ring.MaxBuffers { // more than can be registered at a time
		slot, err := e.Register(arena)
		require.NoError(t, err)
		require.Positive(t, slot)
		e.Unregister(slot)
	}
	late := make(chan struct{})
	slot, err := e.Register(arena)
	require.NoError(t, err)
	e.Submit(&Op{FD: pipe, N: 1, Buf: tiers.Buffer{B: arena[:1], Slot: slot}, Done: func(*Op) {
		e.Unregister(slot)
		close(late)
	}})
	_, err = end.Write([]byte{1})
	require.NoError(t, err)
	<-late
	require.NoError(t, e.Close(t.Context()))
}

// made is a simulated ring. Its completions come in any order and after any time, short, interrupted
// or failed.
type made struct {
	rand   *rand.Rand
	file   []byte
	full   int64 // offset from which the disk is full
	queue  []*ring.Request
	places int
	given  int // since the last Enter
	most   int // largest number of requests in one Enter
	doing  []ring.Request
	ready  []ring.Completion
	armed  bool
	kicked func() bool // reports a write to wakeFD, and waits for one if nothing else is left
	counts map[string]int
}

func (m *made) Next() *ring.Request {
	if len(m.queue) == m.places {
		return nil
	}
	q := new(ring.Request)
	m.queue = append(m.queue, q)
	m.given++
	return q
}

func (m *made) SetBuffer(int, []byte) error { return nil }
func (m *made) Close() error                { return nil }

// Enter takes some of the requests and completes some, at least one if wait is set.
func (m *made) Enter(wait int) error {
	all := len(m.doing)
	for _, q := range m.queue {
		all += count(q.User != wakeUp)
	}
	if given := m.queue[len(m.queue)-m.given:]; wait > 0 && all > 1 && slices.ContainsFunc(given,
		func(q *ring.Request) bool { return q.User != wakeUp }) {
		m.counts["asleep at once"]++
	}
	m.most, m.given = max(m.most, m.given), 0
	n := m.rand.IntN(len(m.queue) + 1)
	for _, q := range m.queue[:n] {
		if q.User == wakeUp {
			m.armed = true
			continue
		}
		m.doing = append(m.doing, *q)
		if q.Op == ring.Read || q.Op == ring.ReadFixed {
			hold(m.memory(*q)) // the kernel may write to all of it at any time
		}
	}
	m.queue = m.queue[n:]
	for len(m.doing) > 0 && (wait > 0 && len(m.ready) == 0 || m.rand.IntN(2) == 0) {
		i := m.rand.IntN(len(m.doing))
		q := m.doing[i]
		m.doing = append(m.doing[:i], m.doing[i+1:]...)
		m.ready = append(m.ready, ring.Completion{User: q.User, Result: m.carryOut(q)})
	}
	idle := len(m.doing)+len(m.ready)+len(m.queue) == 0
	if m.armed && (idle && wait > 0 || m.kicked()) {
		m.armed = false
		m.ready = append(m.ready, ring.Completion{User: wakeUp})
	}
	return nil
}

const held = 0xEE

func hold(b []byte) {
	for i := range b {
		b[i] = held
	}
}

func (m *made) memory(q ring.Request) []byte {
	// The address is that of memory which the request's Op holds; it came from a pointer.
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&q.Addr)), q.Len)
}

// carryOut executes a request, or a part of it, or nothing.
func (m *made) carryOut(q ring.Request) int32 {
	say := func(what string, errno unix.Errno) int32 {
		m.counts[what]++
		return -int32(errno)
	}
	switch q.Op {
	case ring.Fsync:
		return 0
	case ring.Fadvise:
		return -int32([]unix.Errno{0, unix.EINTR, unix.EAGAIN, unix.EIO}[m.rand.IntN(4)])
	case ring.SyncFileRange: // only after all bytes of the request were moved
		if q.Off+uint64(q.Len) > uint64(m.full) {
			return say("out too early", unix.EINVAL)
		}
		return -int32([]unix.Errno{0, unix.EINTR, unix.EAGAIN, unix.EIO}[m.rand.IntN(4)])
	}
	p := m.memory(q)
	switch m.rand.IntN(12) {
	case 0:
		return say("EINTR", unix.EINTR)
	case 1:
		if q.Flags&ring.FlagAsync == 0 {
			return say("EAGAIN", unix.EAGAIN)
		}
	case 2:
		return say("ECANCELED", unix.ECANCELED)
	case 3, 4, 5:
		if len(p) > 1 {
			m.counts["short"]++
			p = p[:1+m.rand.IntN(len(p)-1)]
		}
	}
	if q.Op == ring.Write {
		if room := m.full - int64(q.Off); room <= 0 {
			return say("ENOSPC", unix.ENOSPC)
		} else if int64(len(p)) > room {
			p = p[:room]
		}
		return int32(copy(m.file[q.Off:], p))
	}
	if q.Off >= uint64(len(m.file)) {
		return 0
	}
	return int32(copy(p, m.file[q.Off:]))
}

func (m *made) Reap(each func(ring.Completion)) {
	n := m.rand.IntN(len(m.ready) + 1)
	if n == 0 && len(m.ready) > 0 {
		n = 1
	}
	now := m.ready[:n:n]
	m.ready = m.ready[n:]
	for _, c := range now {
		each(c)
	}
}

// For any results of the kernel, in any order: each request completes once, with all its bytes or
// with an error and the number of bytes. Until then no other request uses its buffer.
func TestNoByteIsLostWhateverTheKernelAnswers(t *testing.T) {
	rings := func(t *testing.T, inline bool, apart time.Duration) (counts map[string]int) {
		return answers(t, func(m *made, rnd *rand.Rand) Engine {
			m.places = 2 + rnd.IntN(8)
			var now atomic.Int64
			e, err := newURing(func() time.Duration { return time.Duration(now.Add(int64(apart))) },
				1, func() (queue, string, error) { return m, "made", nil })
			require.NoError(t, err)
			e.inline = inline
			l := e.rings[0]
			m.kicked = func() bool {
				if len(m.doing)+len(m.ready)+len(m.queue) > 0 {
					return rnd.IntN(2) == 0
				}
				var b [8]byte
				_, err := unix.Read(l.wakeFD, b[:])
				return err == nil
			}
			return e
		})
	}
	t.Run("rings", func(t *testing.T) {
		counts := rings(t, false, 0)
		assert.Positive(t, counts["EAGAIN"])
		assert.Zero(t, counts["out too early"])
		assert.Zero(t, counts["asleep at once"], "it first reaps without waiting")
	})
	t.Run("rings with answers far apart", func(t *testing.T) {
		assert.Positive(t, rings(t, false, 2*soon)["asleep at once"], "it waits at once")
	})
	t.Run("rings that must not wait", func(t *testing.T) {
		assert.Zero(t, rings(t, true, 0)["EAGAIN"], "a kernel thread waits for each request")
	})
	t.Run("calls", func(t *testing.T) {
		answers(t, func(m *made, _ *rand.Rand) Engine {
			var mu sync.Mutex
			call := func(op uint8) func(int, []byte, int64) (int, error) {
				return func(_ int, p []byte, off int64) (int, error) {
					mu.Lock()
					defer mu.Unlock()
					q := ring.Request{Op: op, Addr: address(p), Len: uint32(len(p)),
						Off: uint64(off), Flags: ring.FlagAsync}
					if n := m.carryOut(q); n < 0 {
						return 0, unix.Errno(-n)
					} else {
						return int(n), nil
					}
				}
			}
			return newPsync(func() time.Duration { return 0 }, func(op *Op) (int, error) {
				return transfer(op, 0, call(ring.Read), call(ring.Write))
			})
		})
	})
}

// answers submits many requests to engines on simulated kernels, and returns how often each result
// occurred.
func answers(t *testing.T, open func(*made, *rand.Rand) Engine) (counts map[string]int) {
	counts = map[string]int{}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		file := make([]byte, 64<<10)
		for i := range file {
			file[i] = byte(i*7 + i>>8)
		}
		want := append([]byte(nil), file...)
		full := int64(32<<10 + rnd.IntN(16<<10))
		m := &made{rand: rand.New(rand.NewPCG(seed, 2)), file: file, full: full, counts: counts}
		e := open(m, rnd)
		const n = 60
		var all sync.WaitGroup
		all.Add(n)
		ops := make([]*Op, n)
		for i := range ops {
			// Reads use the first half of the file, writes their own places in the second half.
			size := rnd.IntN(401)
			op := &Op{N: size, Buf: tiers.Buffer{B: make([]byte, size)}}
			if op.Off = int64(rnd.IntN(32 << 10)); i%2 == 1 {
				op.Kind, op.Off = Write, int64(32<<10+i*512)
				for j := range op.Buf.B {
					op.Buf.B[j] = byte(i)
				}
			}
			op.Leaves = m.places > 0 && i%4 < 2 // rings only: psync would call the real kernel
			rounds := 1 + rnd.IntN(3)
			var times atomic.Int32
			op.Done = func(op *Op) {
				assert.LessOrEqual(t, int(times.Add(1)), rounds)
				checkDone(t, op, want, file, full)
				if int(times.Load()) < rounds {
					if op.Kind == Read {
						clear(op.Buf.B) // the test owns it again
					}
					e.Submit(op)
					return
				}
				all.Done()
			}
			ops[i] = op
		}
		for _, op := range ops {
			e.Submit(op)
		}
		all.Wait()
		require.NoError(t, e.Close(t.Context()), "seed %d", seed)
		// including the read of wakeFD
		assert.LessOrEqual(t, m.most, n/batchPart+1, "requests of one call")
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, what := range []string{"EINTR", "ECANCELED", "ENOSPC", "short"} {
		assert.Positive(t, counts[what], what)
	}
	return counts
}

func checkDone(t *testing.T, op *Op, want, file []byte, full int64) {
	switch {
	case op.Err == nil:
		assert.Equal(t, op.N, op.Moved)
	case errors.Is(op.Err, unix.ECANCELED):
		assert.Less(t, op.Moved, max(1, op.N))
	case errors.Is(op.Err, unix.ENOSPC):
		assert.Equal(t, Write, op.Kind)
		assert.Equal(t, max(0, full-op.Off), int64(op.Moved))
	case errors.Is(op.Err, io.ErrUnexpectedEOF):
		assert.Equal(t, Read, op.Kind)
	default:
		t.Errorf("%v", op.Err)
	}
	if op.Kind == Read {
		assert.Equal(t, want[op.Off:op.Off+int64(op.Moved)], op.Buf.B[:op.Moved])
	} else {
		assert.Equal(t, op.Buf.B[:op.Moved], file[op.Off:op.Off+int64(op.Moved)])
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
