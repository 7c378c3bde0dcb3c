package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
	"kvbench/tiers/faults"
	"kvbench/tiers/filetier"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/tiertest"
)

const chunk = tiertest.Chunk

// counted returns a ChunkFunc and the sum of the bytes that it receives.
func counted() (func(tiers.Chunk), *[tiers.NumOps]atomic.Int64) {
	var sums [tiers.NumOps]atomic.Int64
	return func(c tiers.Chunk) { sums[c.Op].Add(c.Bytes) }, &sums
}

func TestTransfersOfAnySizeComeBackAsTheyWent(t *testing.T) {
	tiertest.Some(t, func(t *testing.T, open func(testing.TB) tiers.Files) {
		tier := open(t)
		rng := rand.New(rand.NewPCG(3, 5))
		sizes := []int64{1, 15, 4095, 4096, 4097, chunk - 1, chunk, chunk + 1, 3 * chunk,
			5*chunk + 4097}
		for range 6 {
			sizes = append(sizes, rng.Int64N(12*chunk)+1)
		}
		for _, depth := range []int{1, 2, 5, 40} {
			x := tiertest.Transfer(t, chunk, depth)
			for i, size := range sizes {
				o := tiers.Object{Key: fmt.Sprintf("u%d/c0/t%d", depth, i), Gen: uint64(i),
					Size: size}
				done, sums := counted()
				_, tm, err := x.Write(t.Context(), tier, done, o)
				require.NoError(t, err, "size %d depth %d", size, depth)
				assert.Equal(t, size, sums[tiers.Write].Load())
				assert.GreaterOrEqual(t, tm.Generation, time.Duration(0))
				_, tm, err = x.Read(t.Context(), tier, done, o)
				require.NoError(t, err, "size %d depth %d", size, depth)
				assert.Equal(t, size, sums[tiers.Read].Load())
				assert.GreaterOrEqual(t, tm.Host, time.Duration(0))
				if i%2 == 0 {
					require.NoError(t, tier.Remove(t.Context(), o))
				}
			}
		}
	})
}

func TestAFailureAnywhereLeavesNothing(t *testing.T) {
	o := tiers.Object{Key: "u1/c1/t1", Gen: 1, Size: 6*chunk - 100}
	tiertest.Some(t, func(t *testing.T, open func(testing.TB) tiers.Files) {
		inner := open(t)
		f := faults.Wrap(inner, nil)
		for _, depth := range []int{1, 3} {
			x := tiertest.Transfer(t, chunk, depth)
			for _, call := range []faults.Call{faults.Create, faults.Write, faults.Commit} {
				for n := int64(1); n <= 6; n++ {
					if n > 1 && (call != faults.Write || !inner.Traits().Holds) {
						break
					}
					for _, panics := range []bool{false, true} {
						before := f.Count(call)
						f.SetHook(func(_ context.Context, e faults.Event) error {
							if e.Call != call || e.N != before+n {
								return nil
							}
							if panics {
								panic("on purpose")
							}
							return unix.ENOSPC
						})
						_, _, err := x.Write(t.Context(), f, nil, o)
						if panics {
							var p *tiers.PanicError
							require.ErrorAs(t, err, &p)
							assert.Equal(t, "on purpose", p.Value)
						} else {
							require.ErrorIs(t, err, unix.ENOSPC)
						}
						w, r := f.InUse()
						assert.Zero(t, w+r)
						assert.ErrorIs(t, inner.Remove(t.Context(), o), tiers.ErrNotFound)
					}
				}
			}
			f.SetHook(nil)
			_, _, err := x.Write(t.Context(), f, nil, o)
			require.NoError(t, err, "the way is free again")
			f.SetHook(faults.On(faults.Open, 0, unix.EIO))
			_, _, err = x.Read(t.Context(), f, nil, o)
			require.ErrorIs(t, err, unix.EIO)
			f.SetHook(faults.On(faults.CloseReader, 0, unix.EIO))
			_, _, err = x.Read(t.Context(), f, nil, o)
			require.ErrorIs(t, err, unix.EIO, "the last reader deletes what was removed")
			for n := int64(1); n <= 6 && inner.Traits().Holds; n++ {
				f.SetHook(faults.On(faults.Read, f.Count(faults.Read)+n, unix.EIO))
				_, _, err = x.Read(t.Context(), f, nil, o)
				require.ErrorIs(t, err, unix.EIO)
				w, r := f.InUse()
				assert.Zero(t, w+r)
			}
			require.NoError(t, inner.Remove(t.Context(), o))
		}
	})
}

func TestCancellationTakesEffectAtTheNextChunk(t *testing.T) {
	o := tiers.Object{Key: "u1/c1/t1", Gen: 1, Size: 20 * chunk}
	stop := errors.New("the window's deadline")
	for _, depth := range []int{1, 4} {
		x := tiertest.Transfer(t, chunk, depth)
		inner := tiertest.Memory(t, 4<<20)
		f := faults.Wrap(inner, nil)
		try := func(call faults.Call, run func(ctx context.Context, done func(tiers.Chunk)) error) {
			ctx, cancel := context.WithCancelCause(t.Context())
			before := f.Count(call)
			f.SetHook(func(_ context.Context, e faults.Event) error {
				if e.Call == call && e.N == before+3 {
					cancel(stop)
				}
				return nil
			})
			done, sums := counted()
			err := run(ctx, done)
			assert.ErrorIs(t, err, context.Canceled)
			assert.ErrorIs(t, err, stop)
			assert.ErrorContains(t, err, "u1/c1/t1")
			moved := sums[tiers.Read].Load() + sums[tiers.Write].Load()
			assert.GreaterOrEqual(t, moved, int64(chunk), "completed chunks were reported")
			assert.LessOrEqual(t, moved, int64((3+depth)*chunk))
			f.SetHook(nil)
			w, r := f.InUse()
			assert.Zero(t, w+r)
		}
		try(faults.Write, func(ctx context.Context, done func(tiers.Chunk)) error {
			_, _, err := x.Write(ctx, f, done, o)
			return err
		})
		w, err := inner.Create(t.Context(), tiers.Object{Key: "whole", Size: 4 << 20})
		require.NoError(t, err, "a cancelled write gives its memory back")
		require.NoError(t, w.Abort())
		_, _, err = x.Write(t.Context(), f, nil, o)
		require.NoError(t, err)
		try(faults.Read, func(ctx context.Context, done func(tiers.Chunk)) error {
			_, _, err := x.Read(ctx, f, done, o)
			return err
		})
	}
}

func TestDeviceTimeIsTheUnionOfCallsInTheTier(t *testing.T) {
	for _, c := range []struct {
		depth              int
		write, flush, read time.Duration
	}{
		{1, 8 * time.Second, time.Second, 8 * time.Second},
		{4, 2 * time.Second, time.Second, 2 * time.Second},
	} {
		x := tiertest.Transfer(t, chunk, c.depth)
		x.Verify = content.VerifyNone
		synctest.Test(t, func(t *testing.T) {
			var in, peak atomic.Int64
			tier := faults.Wrap(tiertest.Memory(t, 4<<20),
				func(_ context.Context, e faults.Event) error {
					n := in.Add(1)
					for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
					}
					defer in.Add(-1)
					switch e.Call {
					case faults.Write, faults.Read, faults.Commit:
						<-time.After(time.Second)
					}
					return nil
				})
			o := tiers.Object{Key: "k", Gen: uint64(c.depth), Size: 8 * chunk}
			x.Clock = clock.NewWall()
			_, tm, err := x.Write(t.Context(), tier, nil, o)
			require.NoError(t, err)
			assert.Equal(t, tiers.Timing{Device: c.write + c.flush}, tm)
			assert.EqualValues(t, c.depth, peak.Load(),
				"as many in flight as the depth allows, no more")
			_, tm, err = x.Read(t.Context(), tier, nil, o)
			require.NoError(t, err)
			assert.Equal(t, tiers.Timing{Device: c.read}, tm)

			x.FlushOnly = true
			o.Gen += 10
			_, tm, err = x.Write(t.Context(), tier, nil, o)
			require.NoError(t, err)
			assert.Equal(t, tiers.Timing{Device: c.flush, Host: c.write}, tm)
		})
	}
}

// A write that the end of a window interrupts is deleted after the window, which may take longer than
// the write did.
func TestUndoingAWriteIsNoPartOfIt(t *testing.T) {
	x := tiertest.Transfer(t, chunk, 1)
	inner := tiertest.Memory(t, 4<<20)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		tier := faults.Wrap(inner, func(_ context.Context, e faults.Event) error {
			switch e.Call {
			case faults.Write:
				<-time.After(time.Second)
				cancel(nil)
			case faults.Abort:
				<-time.After(time.Minute)
			}
			return nil
		})
		x.Clock = clock.NewWall()
		_, tm, err := x.Write(ctx, tier, nil, tiers.Object{Key: "k", Size: 8 * chunk})
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, tiers.Timing{Device: time.Second}, tm)
	})
}

func TestWaitingForBuffersIsAdmission(t *testing.T) {
	x := tiertest.Transfer(t, chunk, 1)
	tier := tiertest.Memory(t, 1<<20)
	synctest.Test(t, func(t *testing.T) {
		x.Clock = clock.NewWall()
		bufs, err := x.Pool.Get(t.Context(), x.Pool.Buffers(), nil)
		require.NoError(t, err)
		time.AfterFunc(3*time.Second, func() { x.Pool.Put(bufs...) })
		_, tm, err := x.Write(t.Context(), tier, nil, tiers.Object{Key: "k", Size: 100})
		require.NoError(t, err)
		assert.Equal(t, tiers.Timing{Admission: 3 * time.Second}, tm)
	})
}

func TestTransfersAllocateNothingPerChunk(t *testing.T) {
	if buffer.RaceEnabled {
		t.Skip("the race detector allocates by itself")
	}
	tier := tiertest.Files(t, filetier.Config{})
	x := tiertest.Transfer(t, 4096, 1)
	x.Verify = content.VerifyNone // a sampled block needs a stream
	done := func(tiers.Chunk) {}
	// The engine starts a worker for each request that finds the others busy, and keeps it: on a busy
	// machine up to 200 workers, with three allocations each, once. That is too few for 95 extra
	// allocations in each of nine turns, so the least of nine excludes them.
	least := func(transfer func()) float64 {
		fewest := math.Inf(1)
		for range 9 {
			fewest = min(fewest, testing.AllocsPerRun(1, transfer))
		}
		return fewest
	}
	allocs := func(chunks int64) (write, read float64) {
		o := tiers.Object{Key: "u1/c1/t1", Size: chunks * 4096}
		write = least(func() {
			o.Gen++
			_, _, err := x.Write(t.Context(), tier, done, o)
			require.NoError(t, err)
		})
		read = least(func() {
			_, _, err := x.Read(t.Context(), tier, done, o)
			require.NoError(t, err)
		})
		for ; o.Gen > 0; o.Gen-- {
			require.NoError(t, tier.Remove(t.Context(), o))
		}
		return write, read
	}
	// The difference between an entry of 10 chunks and one of 200 is the cost of chunks: it would be
	// 190 with one allocation per chunk.
	writeFew, readFew := allocs(10)
	writeMany, readMany := allocs(200)
	assert.InDelta(t, writeFew, writeMany, 95)
	assert.InDelta(t, readFew, readMany, 95)
}

// A device that hangs keeps the buffers of its requests until it completes them. Other operations are
// not affected.
func TestAStuckDeviceCostsItsBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := clock.NewWall()
		psync := ioengine.NewPsync(wall.Now)
		engine := tiertest.NewEngine(psync)
		tier := tiertest.Files(t, filetier.Config{Engine: engine})
		x := tiertest.Transfer(t, chunk, 4)
		x.Clock = wall
		old := tiers.Object{Key: "old", Gen: 1, Size: 9 * chunk}
		_, _, err := x.Write(t.Context(), tier, nil, old)
		require.NoError(t, err)

		engine.Hold(func(op *ioengine.Op) bool { return true })
		stop := errors.New("a signal")
		for _, run := range []func(ctx context.Context, done func(tiers.Chunk)) error{
			func(ctx context.Context, done func(tiers.Chunk)) error {
				_, _, err := x.Read(ctx, tier, done, old)
				return err
			},
			func(ctx context.Context, done func(tiers.Chunk)) error {
				_, _, err := x.Write(ctx, tier, done,
					tiers.Object{Key: "new", Gen: 2, Size: 9 * chunk})
				return err
			},
		} {
			before := engine.Held()
			ctx, cancel := context.WithCancelCause(t.Context())
			done, sums := counted()
			ended := make(chan error, 1)
			go func() { ended <- run(ctx, done) }()
			synctest.Wait()
			assert.Equal(t, before+4, engine.Held())
			at := wall.Now()
			cancel(stop)
			assert.ErrorIs(t, <-ended, stop)
			assert.Equal(t, tiers.Grace, wall.Now()-at)
			assert.Zero(t, sums[tiers.Read].Load()+sums[tiers.Write].Load())
		}
		assert.ErrorContains(t, x.Pool.Close(), "8 of 16 buffers are still in use")
		memory := tiertest.Memory(t, 1<<20)
		_, _, err = x.Write(t.Context(), memory, nil, old)
		require.NoError(t, err, "others have the rest of the buffers")
		require.NoError(t, tier.Remove(t.Context(), old))

		engine.Release()
		synctest.Wait()
		held, waste := tier.Footprint()
		assert.Zero(t, held+waste, "what was given up is gone now")
		require.NoError(t, tier.Close())
		require.NoError(t, psync.Close(t.Context()))
	})
}

// TestRanges: the ranges of an object are read concurrently, each from front to back, and every
// byte once. Streams at the end of their range take chunks of the other ranges.
func TestRanges(t *testing.T) {
	for _, c := range []struct {
		ranges, depth, chunks int
		rounds                [][]int64 // chunks that are in flight together
	}{
		{0, 4, 8, [][]int64{{0, 1, 2, 3}, {4, 5, 6, 7}}},
		{1, 1, 3, [][]int64{{0}, {1}, {2}}},
		{2, 4, 8, [][]int64{{0, 1, 4, 5}, {2, 3, 6, 7}}},
		{4, 4, 9, [][]int64{{0, 2, 4, 6}, {1, 3, 5, 7}, {8}}},
		{8, 2, 4, [][]int64{{0, 2}, {1, 3}}}, // no more ranges than requests
		{3, 2, 6, [][]int64{{0, 3}, {1, 4}, {2, 5}}},
		{3, 4, 6, [][]int64{{0, 1, 2, 4}, {3, 5}}},
		{4, 4, 3, [][]int64{{0, 1, 2}}},
	} {
		x := tiertest.Transfer(t, chunk, c.depth)
		x.Verify, x.Ranges = content.VerifyFull, c.ranges
		inner := tiertest.Memory(t, 4<<20)
		synctest.Test(t, func(t *testing.T) {
			x.Clock = clock.NewWall()
			o := tiers.Object{Key: "k", Size: int64(c.chunks)*chunk - 5}
			_, _, err := x.Write(t.Context(), inner, nil, o)
			require.NoError(t, err)
			rounds := make([][]int64, len(c.rounds))
			var mu sync.Mutex
			from := time.Now()
			tier := faults.Wrap(inner, func(_ context.Context, e faults.Event) error {
				if e.Call == faults.Read {
					mu.Lock()
					i := int(time.Since(from) / time.Second)
					rounds[i] = append(rounds[i], e.Offset/chunk)
					mu.Unlock()
					<-time.After(time.Second)
				}
				return nil
			})
			done, sums := counted()
			_, _, err = x.Read(t.Context(), tier, done, o)
			require.NoError(t, err)
			for i, want := range c.rounds {
				assert.ElementsMatch(t, want, rounds[i], "%+v", c)
			}
			assert.Equal(t, o.Size, sums[tiers.Read].Load())
		})
	}
}
