package ring

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// nop is IORING_OP_NOP, which only tests need.
const nop = 0

// open makes a ring, or skips the test if the system does not allow one.
func open(t testing.TB, entries int) *Ring {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	r, err := New(entries)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	return r
}

// The structs have the sizes of the kernel's header.
func TestSizesAreThoseOfTheKernel(t *testing.T) {
	assert.EqualValues(t, 64, unsafe.Sizeof(Request{}))
	assert.EqualValues(t, 16, unsafe.Sizeof(Completion{}))
	assert.EqualValues(t, 120, unsafe.Sizeof(setup{}))
	assert.EqualValues(t, 32, unsafe.Sizeof(resources{}))
	assert.EqualValues(t, 32, unsafe.Sizeof(update{}))
}

// The entries of both queues are reused, whatever number of them is filled at a time.
func TestTheQueuesWrapAround(t *testing.T) {
	r := open(t, 8)
	next, reaped := uint64(0), make(map[uint64]bool)
	for round := range 1000 {
		for range 1 + round%8 {
			q := r.Next()
			require.NotNil(t, q)
			q.Op, q.User = nop, next
			next++
		}
		if round%8 == 7 {
			assert.Nil(t, r.Next(), "there are eight entries")
		}
		require.NoError(t, r.Enter(1))
		r.Reap(func(c Completion) {
			assert.Zero(t, c.Result)
			assert.False(t, reaped[c.User], "%d came twice", c.User)
			reaped[c.User] = true
		})
	}
	for len(reaped) < int(next) {
		require.NoError(t, r.Enter(1))
		r.Reap(func(c Completion) { reaped[c.User] = true })
	}
	assert.Len(t, reaped, int(next))
}

// Completions beyond the queue's capacity wait in the kernel: none is lost or delivered twice.
func TestCompletionsThatOverflowAreNotLost(t *testing.T) {
	r := open(t, 8)
	for batch := range 6 {
		for i := range 8 {
			q := r.Next()
			require.NotNil(t, q)
			q.Op, q.User = nop, uint64(batch*8+i)
		}
		require.NoError(t, r.Enter(0))
		if r.Next() == nil { // the kernel takes no request until some completions were reaped
			break
		}
		r.next--
	}
	came := make(map[uint64]int)
	for range 100 {
		r.Reap(func(c Completion) { came[c.User]++ })
		require.NoError(t, r.Enter(0))
	}
	assert.Len(t, came, int(r.next))
	for user, times := range came {
		assert.Equal(t, 1, times, "%d", user)
	}
}

// A signal ends the wait for a completion that never comes, without an error: the Go runtime sends
// signals at any time.
func TestASignalEndsAWait(t *testing.T) {
	r := open(t, 8)
	thread, over := unix.Gettid(), make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		for { // until a signal meets the wait, which may begin late
			select {
			case <-over:
				return
			default:
				_ = unix.Tgkill(unix.Getpid(), thread, unix.SIGURG)
				runtime.Gosched()
			}
		}
	})
	assert.NoError(t, r.Enter(1))
	close(over)
	ended.Wait()
	r.Reap(func(Completion) { t.Error("there was no request") })
}
