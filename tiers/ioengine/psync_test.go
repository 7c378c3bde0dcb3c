package ioengine

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

func submitAndWait(e Engine, op *Op) *Op {
	done := make(chan struct{})
	op.Done = func(*Op) { close(done) }
	e.Submit(op)
	<-done
	return op
}

func TestPsyncReadsWhatItWrote(t *testing.T) {
	var ticks atomic.Int64
	e := NewPsync(func() time.Duration { return time.Duration(ticks.Add(1)) })
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	defer f.Close()
	readsWhatItWrote(t, e, int(f.Fd()))
	require.NoError(t, e.Close(t.Context()))
}

// readsWhatItWrote tests an engine with an empty file. The text lies behind 4 GiB of a sparse file.
func readsWhatItWrote(t *testing.T, e Engine, fd int) {
	t.Helper()
	const at = 5 << 30
	text := []byte("what was written")
	op := submitAndWait(e, &Op{Kind: Write, FD: fd, Buf: tiers.Buffer{B: text}, Off: at,
		N: len(text)})
	require.NoError(t, op.Err)
	assert.Equal(t, len(text), op.Moved)
	assert.Greater(t, op.Ended, op.Begun)
	require.NoError(t, submitAndWait(e, &Op{Kind: Sync, FD: fd}).Err)
	require.NoError(t, submitAndWait(e, &Op{Kind: DataSync, FD: fd}).Err)
	got := make([]byte, len(text))
	require.NoError(t, submitAndWait(e,
		&Op{FD: fd, Buf: tiers.Buffer{B: got}, Off: at, N: len(got)}).Err)
	assert.Equal(t, text, got)
	var s unix.Stat_t
	require.NoError(t, unix.Fstat(fd, &s))
	assert.EqualValues(t, at+len(text), s.Size)
	op = submitAndWait(e, &Op{FD: fd, Buf: tiers.Buffer{B: got}, Off: at + 4, N: len(got)})
	require.ErrorIs(t, op.Err, io.ErrUnexpectedEOF)
	assert.Equal(t, len(got)-4, op.Moved)
	assert.ErrorIs(t, submitAndWait(e, &Op{FD: -1, Buf: tiers.Buffer{B: got}, N: 1}).Err,
		unix.EBADF)
}

// A device that hangs keeps its requests. Other requests complete, and Close does not wait for ever.
func TestAStuckDeviceCostsItsRequestsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		answer := make(chan struct{})
		e := newPsync(func() time.Duration { return time.Since(start) }, func(op *Op) (int, error) {
			if op.FD == 666 {
				<-answer
			}
			return op.N, nil
		})
		var back atomic.Int64
		for range 50 {
			e.Submit(&Op{FD: 666, N: 10, Done: func(*Op) { back.Add(1) }})
		}
		synctest.Wait()
		for range 1000 {
			submitAndWait(e, &Op{FD: 1})
		}
		assert.Empty(t, e.Stuck(nil, time.Minute))
		time.Sleep(2 * time.Minute)
		stuck := e.Stuck(nil, time.Minute)
		assert.Len(t, stuck, 50)
		assert.Equal(t, Stuck{What: "read", Path: "descriptor 666", N: 10, For: 2 * time.Minute},
			stuck[0])
		assert.EqualValues(t, 50, e.Stalls().Count)

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second,
			errors.New("a second has passed"))
		defer cancel()
		assert.EqualError(t, e.Close(ctx),
			"close the I/O engine: the device still has 50 requests: a second has passed")
		assert.Zero(t, back.Load())
		close(answer)
		require.NoError(t, e.Close(t.Context()))
		synctest.Wait()
		assert.EqualValues(t, 50, back.Load())
		all := e.Stalls()
		assert.EqualValues(t, 50, all.Count)
		assert.Len(t, all.Longest, mostStalls)
		assert.True(t, all.Longest[0].Answered)
		assert.Equal(t, 2*time.Minute+time.Second, all.Longest[0].For)
	})
}

// Other calls are also reported as stuck or late; quick calls are not.
func TestCallsThatStallAreToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		e := newPsync(func() time.Duration { return time.Since(start) }, nil)
		refused := errors.New("refused")
		require.NoError(t, e.Call("create", "/kv/quick", func() error { return nil }))
		answer := make(chan struct{})
		failed := make(chan error)
		go func() {
			failed <- e.Call("remove", "/kv/slow", func() error { <-answer; return refused })
		}()
		time.Sleep(3 * time.Second)
		slow := Stuck{What: "remove", Path: "/kv/slow", For: 3 * time.Second}
		assert.Equal(t, []Stuck{slow}, e.Stuck(nil, time.Second))
		assert.Equal(t, Stalls{Count: 1, Longest: []Stuck{slow}}, e.Stalls())
		assert.Equal(t, "remove of /kv/slow", slow.String())
		close(answer)
		assert.Equal(t, refused, <-failed)
		slow.Answered = true
		assert.Equal(t, Stalls{Count: 1, Longest: []Stuck{slow}}, e.Stalls())
		was := slow
		was.Answered, was.For = false, was.For-time.Second
		assert.Equal(t, Stalls{Count: 1, Longest: []Stuck{slow}}, e.stalls([]Stuck{was}),
			"a call that completed while Stalls ran")
		assert.Empty(t, e.Stuck(nil, 0))
	})
}

// A request that its own Done submits again stays on its worker: there are no more workers than
// chains of requests, however long these are.
func TestAChainOfRequestsNeedsOneWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inside, most atomic.Int64
		before := runtime.NumGoroutine()
		e := newPsync(func() time.Duration { return 0 }, func(op *Op) (int, error) {
			n := inside.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Millisecond)
			inside.Add(-1)
			return op.N, nil
		})
		done := make(chan struct{}, 4)
		for range 4 {
			left := 100
			op := &Op{}
			op.Done = func(op *Op) {
				if left--; left > 0 {
					e.Submit(op)
				} else {
					done <- struct{}{}
				}
			}
			e.Submit(op)
		}
		for range 4 {
			<-done
		}
		assert.EqualValues(t, 4, most.Load())
		synctest.Wait()
		assert.LessOrEqual(t, runtime.NumGoroutine(), before+4, "a chain starts no further workers")
		require.NoError(t, e.Close(t.Context()))
	})
}

// A direct write that a full disk has cut at an unaligned offset cannot continue from there. The
// bytes before that block are kept, and the error is ENOSPC.
func TestAWriteThatWasCutSaysWhy(t *testing.T) {
	type call struct{ off, n int }
	for why, want := range map[error]error{unix.ENOSPC: unix.ENOSPC, unix.EDQUOT: unix.EDQUOT,
		nil: unix.EINVAL} {
		var calls []call
		write := func(_ int, p []byte, off int64) (int, error) {
			calls = append(calls, call{int(off), len(p)})
			switch {
			case off%4096 != 0:
				return 0, unix.EINVAL
			case len(calls) == 1 || why == nil: // every attempt is cut there
				return 5000 - int(off), nil
			}
			return 0, why
		}
		n, err := transfer(&Op{Kind: Write, Buf: tiers.Buffer{B: make([]byte, 12288)}, N: 12288},
			0, nil, write)
		assert.Equal(t, want, err)
		tried := []call{{0, 12288}, {5000, 7288}, {4096, 8192}}
		if why == nil {
			tried = append(tried, call{5000, 7288})
		}
		assert.Equal(t, tried, calls)
		assert.LessOrEqual(t, n, 5000)
	}
}

// A file ends where a call moves nothing, or where a direct read would continue from an unaligned offset.
func TestAShortTransferHasAnError(t *testing.T) {
	for _, c := range []struct {
		kind  Kind
		last  error // of the second call
		moved int   // by the first call
		want  error
	}{
		{Read, nil, 40, io.ErrUnexpectedEOF},
		{Read, unix.EINVAL, 40, io.ErrUnexpectedEOF},
		{Write, nil, 40, io.ErrShortWrite},
		{Read, unix.EINVAL, 0, io.ErrUnexpectedEOF},
		{Write, unix.EINVAL, 0, io.ErrShortWrite},
	} {
		calls := 0
		call := func(int, []byte, int64) (int, error) {
			if calls++; calls == 1 {
				return c.moved, nil
			}
			return 0, c.last
		}
		op := &Op{Kind: c.kind, Buf: tiers.Buffer{B: make([]byte, 100)}, N: 100}
		n, err := transfer(op, 0, call, call)
		assert.Equal(t, c.moved, n)
		assert.Equal(t, c.want, err)
	}
}
